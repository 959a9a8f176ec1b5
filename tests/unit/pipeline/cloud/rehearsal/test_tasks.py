"""A job of plain commands: its graph, and its tasks one by one."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from slipway.components.errors import ComponentError, GateStopError
from slipway.pipeline.cloud.complete_job import FIND, TFX_DAG
from slipway.pipeline.cloud.container.kubeflow_input import ABSENT
from slipway.pipeline.cloud.rehearsal.services import Service
from slipway.pipeline.cloud.rehearsal.tasks import EXIT_HANDLER, STATUS_FILE, Rehearsed

MODEL = {"schemaTitle": "tfx.Model"}
WRITES = """
import json, pathlib, sys
given = json.loads(sys.argv[1])
[made] = given["outputs"]["artifacts"]["model"]["artifacts"]
folder = pathlib.Path(made["uri"])
folder.mkdir()
(folder / "asked.json").write_text(json.dumps(given["inputs"]["parameterValues"]))
artifacts = {"model": {"artifacts": [{"metadata": {"blessed": 1}}]}}
output = {"artifacts": artifacts, "parameterValues": {"rows": 3.0}}
pathlib.Path(given["outputs"]["outputFile"]).write_text(json.dumps(output))
"""


def container(*command, **more):
    return {"container": {"image": "i:1", "command": list(command), "args": ["{{$}}"], **more}}


def component(label, outputs=("model",), parameters=()):
    made = {
        "artifacts": {k: {"artifactType": MODEL} for k in outputs},
        "parameters": {key: {} for key in parameters},
    }
    return {"executorLabel": label, "outputDefinitions": made}


def from_task(producer, key="model"):
    return {"taskOutputArtifact": {"producerTask": producer, "outputArtifactKey": key}}


@pytest.fixture
def job(tmp_path):
    python = (sys.executable, "-c", WRITES)
    rows = {"taskOutputParameter": {"producerTask": "Make", "outputParameterKey": "rows"}}
    name = "{{$.inputs.artifacts['input'].name}}"
    query = f'schema_title="tfx.Model" AND state=LIVE AND name="{name}"'
    tasks = {
        "Use": {"inputs": {"artifacts": {"model": from_task("Make")}, "parameters": {"rows": rows}}},
        "Make": {"cachingOptions": {"enableCache": True}},
        "Find": {"inputs": {"artifacts": {"input": from_task("Make")}}},
        "Bring": {},
        "If": {
            "inputs": {"artifacts": {"model": from_task("Make")}},
            "triggerPolicy": {
                "condition": "(inputs.artifacts['model'].artifacts[0].metadata['blessed'] == 2.0)"
            },
        },
    }
    for task_name, task in tasks.items():
        task["componentRef"] = {"name": task_name}
        if "inputs" in task:
            task["dependentTasks"] = ["Make"]
    executors = {
        "Make": container(*python),
        "Use": container(*python),
        "If": container("false"),
        "Find": {"resolver": {"outputArtifactQueries": {"model": {"filter": query}}}},
        "Bring": {"importer": {"artifactUri": {"constant": "/from/there"}, "metadata": {"a": 1}}},
    }
    return {
        "runtimeConfig": {"gcsOutputDirectory": str(tmp_path / "artifacts")},
        "pipelineSpec": {
            "pipelineInfo": {"name": "p"},
            "components": {name: component(name, parameters=["rows"]) for name in tasks},
            "deploymentSpec": {"executors": executors},
            "root": {"dag": {"tasks": tasks}},
        },
    }


class Elsewhere:
    """Files at far://, which are in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def at(self, address):
        return self.folder / address.removeprefix("far://")

    def take(self, address):
        if not self.at(address).exists():
            return None
        text = self.at(address).read_text()
        self.at(address).unlink()
        return text

    def fetch(self, address, folder):
        if self.at(address).exists():
            shutil.copytree(self.at(address), folder)


@pytest.fixture
def rehearsed(job, tmp_path):
    return lambda run_id="1": Rehearsed(
        job=job, run_id=run_id, runs=tmp_path / "runs", files=Elsewhere(tmp_path / "elsewhere")
    )


def executor(job, name):
    return job["pipelineSpec"]["deploymentSpec"]["executors"][name]["container"]


def test_graph_is_in_order_with_retries_and_limits_of_the_job(rehearsed, job):
    job["pipelineSpec"]["root"]["dag"]["tasks"]["Use"]["retryPolicy"] = {
        "maxRetryCount": 2, "backoffDuration": "30s"
    }  # fmt: skip
    executor(job, "Use")["command"] = ["timeout", "--kill-after=10", "91", "python"]
    graph = rehearsed().graph
    assert graph.ids[:2] == ("Bring", "Make")
    use = graph["Use"]
    assert (use.upstream, use.retries, use.backoff_s, use.timeout_s) == (("Make",), 2, 30.0, 91.0)
    assert graph["Find"].is_resolver
    assert graph["Make"].timeout_s is None
    assert use.outputs == {"model": "tfx.Model"}
    assert [node.id for node in graph.nodes if node.has_condition] == ["If"], "which says why it is left out"


def test_container_that_looks_artifacts_up_is_a_resolver_and_what_it_missed_is_no_output(rehearsed, job):
    executor(job, "Make")["command"] = ["python", "-m", FIND]
    looking = rehearsed().graph["Make"]
    assert (looking.type, looking.is_resolver) == ("Resolver", True)
    missed = f'"metadata": {{"{ABSENT}": 1.0}}'
    executor(job, "Make")["command"] = [
        sys.executable, "-c", WRITES.replace('"metadata": {"blessed": 1}', missed)
    ]  # fmt: skip
    assert rehearsed().run_task("Make", attempt=1)["outputs"] == {"model": []}


def test_tasks_that_wait_for_each_other_are_refused(rehearsed, job):
    job["pipelineSpec"]["root"]["dag"]["tasks"]["Make"]["dependentTasks"] = ["Use"]
    with pytest.raises(
        ComponentError, match="wait for each other, or for a missing task: Find, If, Make, Use"
    ):
        _ = rehearsed().graph


def test_artifacts_metadata_and_parameters_go_from_task_to_task(rehearsed):
    made = rehearsed().run_task("Make", attempt=1)
    assert made["state"] == "complete"
    [model] = made["outputs"]["model"]
    assert (model["type"], model["properties"]) == ("Model", {"blessed": 1})
    used = rehearsed().run_task("Use", attempt=1)
    asked = json.loads((Path(used["outputs"]["model"][0]["uri"]) / "asked.json").read_text())
    assert asked == {"rows": 3.0}


def wrap_with_exit_handler(job):
    """As TFX does: the tasks in a task of their own, and the exit handler beside that."""
    spec = job["pipelineSpec"]
    spec["components"][TFX_DAG] = {"dag": {"tasks": spec["root"]["dag"]["tasks"]}}
    spec["components"]["Tell"] = {"executorLabel": "Tell"}
    writes = "import json, sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    told = "{{$.inputs.parameters['status']}}"
    place = f"{job['runtimeConfig']['gcsOutputDirectory']}/told"
    command = [sys.executable, "-c", writes, place, told]
    spec["deploymentSpec"]["executors"]["Tell"] = {"container": {"image": "i", "command": command}}
    spec["root"]["dag"]["tasks"] = {
        TFX_DAG: {"componentRef": {"name": TFX_DAG}},
        "Tell": {
            "componentRef": {"name": "Tell"},
            "dependentTasks": [TFX_DAG],
            "inputs": {"parameters": {"status": {"taskFinalStatus": {"producerTask": TFX_DAG}}}},
            "triggerPolicy": {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"},
        },
    }
    return Path(place)


def test_exit_handler_waits_for_all_tasks_and_gets_what_became_of_them(rehearsed, job, tmp_path):
    told = wrap_with_exit_handler(job)
    graph = rehearsed().graph
    assert graph.ids[-1] == "Tell"
    assert graph["Tell"].type == EXIT_HANDLER
    assert set(graph["Tell"].upstream) == {"Bring", "Find", "If", "Make", "Use"}
    status = {"state": "FAILED", "error": {"code": 13, "message": "Make: broken"}}
    run = tmp_path / "runs" / "1"
    run.mkdir(parents=True)
    (run / STATUS_FILE).write_text(json.dumps(status))
    assert rehearsed().run_task("Tell", attempt=1)["state"] == "complete"
    assert json.loads(told.read_text()) == status


def test_artifacts_elsewhere_are_copied_here_to_be_looked_at(rehearsed, job, tmp_path):
    there = tmp_path / "elsewhere"
    job["runtimeConfig"]["gcsOutputDirectory"] = "far://bucket"
    executor(job, "Make")["command"][2] = (
        WRITES.replace("given = ", "given = at_hand(")
        .replace("(sys.argv[1])", "(sys.argv[1]))", 1)
        .replace(
            "import json, pathlib, sys",
            f"import json, pathlib, sys\ndef at_hand(given):\n"
            f"    return json.loads(json.dumps(given).replace('far://', '{there}/'))",
        )
        .replace("folder.mkdir()", "folder.mkdir(parents=True)")
    )
    made = rehearsed().run_task("Make", attempt=1)
    [model] = made["outputs"]["model"]
    assert model["properties"] == {"blessed": 1}
    here = Path(model["uri"])
    assert here.is_relative_to(tmp_path / "runs" / "1")
    assert (here / "asked.json").is_file()
    assert (there / "bucket" / "1" / "Make_1" / "model" / "asked.json").is_file()


def test_condition_that_is_not_met_leaves_the_task_out(rehearsed):
    rehearsed().run_task("Make", attempt=1)
    assert rehearsed().run_task("If", attempt=1)["state"] == "skipped"


def test_resolver_finds_by_name_and_importer_brings_without_running(rehearsed):
    made = rehearsed().run_task("Make", attempt=1)
    assert rehearsed().run_task("Find", attempt=1)["outputs"]["model"] == made["outputs"]["model"]
    brought = rehearsed().run_task("Bring", attempt=1)["outputs"]["model"]
    assert brought == [{"uri": "/from/there", "type": "Model", "properties": {"a": 1}}]


def test_what_earlier_runs_left_at_another_root_is_not_found(rehearsed, job):
    query = 'schema_title="tfx.Model" AND state=LIVE'
    spec = job["pipelineSpec"]
    spec["root"]["dag"]["tasks"]["Find"] = {"componentRef": {"name": "Find"}}
    spec["deploymentSpec"]["executors"]["Find"]["resolver"]["outputArtifactQueries"]["model"]["filter"] = (
        query
    )
    made = rehearsed("1").run_task("Make", attempt=1)
    assert rehearsed("2").run_task("Find", attempt=1)["outputs"]["model"] == made["outputs"]["model"]
    job["runtimeConfig"]["gcsOutputDirectory"] = "far://bucket"
    assert not rehearsed("3").run_task("Find", attempt=1)["outputs"].get("model")


def test_equal_task_is_cached_in_the_next_run_and_not_after_a_change(rehearsed, job):
    first = rehearsed("1").run_task("Make", attempt=1)
    second = rehearsed("2").run_task("Make", attempt=1)
    assert (second["state"], second["outputs"]) == ("cached", first["outputs"])
    executor(job, "Make")["image"] = "i:2"
    assert rehearsed("3").run_task("Make", attempt=1)["state"] == "complete"


class Containers(Service):
    """A service that keeps book of its containers, and knows tasks by no name."""

    def __init__(self):
        self.did = []

    def prepare_task(self, given):
        super().prepare_task(given)
        self.did.append("brings")

    def clean_up(self):
        self.did.append("ends")

    def cache_key(self, component, container, given):
        return super().cache_key({}, container, given)


@pytest.fixture
def in_containers(rehearsed):
    return lambda run_id="1": replace(rehearsed(run_id), service=Containers())


def test_equal_task_of_another_name_is_taken_where_the_service_does_not_look_at_names(in_containers, job):
    in_containers("1").run_task("Make", attempt=1)
    spec = job["pipelineSpec"]
    spec["root"]["dag"]["tasks"]["Other"] = {**spec["root"]["dag"]["tasks"]["Make"]}
    spec["root"]["dag"]["tasks"]["Other"]["componentRef"] = {"name": "Other"}
    spec["components"]["Other"] = component("Other", parameters=["rows"])
    spec["deploymentSpec"]["executors"]["Other"] = spec["deploymentSpec"]["executors"]["Make"]
    assert in_containers("2").run_task("Other", attempt=1)["state"] == "cached"


def test_cached_task_has_no_container_and_one_that_failed_is_removed_too(in_containers, job):
    first, second = in_containers("1"), in_containers("2")
    first.run_task("Make", attempt=1)
    assert first.service.did == ["brings", "ends"]
    assert second.run_task("Make", attempt=1)["state"] == "cached"
    assert second.service.did == []
    executor(job, "Make")["command"] = ["false"]
    third = in_containers("3")
    with pytest.raises(ComponentError, match="false ended with code 1"):
        third.run_task("Make", attempt=1)
    assert third.service.did == ["brings", "ends"]


def test_task_that_may_not_be_cached_runs_again(rehearsed):
    rehearsed("1").run_task("Make", attempt=1)
    rehearsed("1").run_task("Use", attempt=1)
    assert rehearsed("1").run_task("Use", attempt=2)["state"] == "complete"


def test_driver_s_parameters_reach_the_executor_and_the_cache_key(rehearsed, job):
    def driver(number):
        code = f"""
import json, pathlib, sys
output = {{"parameterValues": {{"fingerprint": {number}}}}}
pathlib.Path(json.loads(sys.argv[1])["outputs"]["outputFile"]).write_text(json.dumps(output))
"""
        command = [sys.executable, "-c", code]
        return {"preCacheCheck": {"command": command, "args": ["{{$}}"]}}

    # An output file that is there would be the driver's.
    writes = WRITES.replace("""["outputFile"]).write_text(""", """["outputFile"]).open("x").write(""")
    executor(job, "Make").update(lifecycle=driver(1), command=[sys.executable, "-c", writes])
    made = rehearsed("1").run_task("Make", attempt=1)
    assert json.loads((Path(made["outputs"]["model"][0]["uri"]) / "asked.json").read_text()) == {
        "fingerprint": 1
    }
    assert rehearsed("2").run_task("Make", attempt=1)["state"] == "cached"
    executor(job, "Make")["lifecycle"] = driver(2)
    assert rehearsed("3").run_task("Make", attempt=1)["state"] == "complete"


def test_command_that_fails_is_named_with_its_code(rehearsed, job):
    executor(job, "Make")["command"] = ["timeout", "--kill-after=10", "60", "sh", "-c", "exit 7"]
    with pytest.raises(ComponentError, match="sh ended with code 7"):
        rehearsed().run_task("Make", attempt=1)


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("raise SystemExit(4)", ComponentError, "python -m tool ended with code 4"),
        ("raise ValueError('broken')", ValueError, "broken"),
        ("import only_there", ComponentError, "the module only_there.* is not in the image"),
        (
            "from slipway.components.errors import GateStopError\n"
            "raise SystemExit(3) from GateStopError('drift', verdict={})",
            GateStopError,
            "drift",
        ),
    ],
)
def test_python_module_s_own_error_is_the_cause(rehearsed, job, monkeypatch, tmp_path, code, error, words):
    (tmp_path / "tool.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    executor(job, "Make")["command"] = ["python", "-m", "tool"]
    with pytest.raises(error, match=words):
        rehearsed().run_task("Make", attempt=1)


def test_modules_to_import_are_those_of_commands_drivers_and_executors(rehearsed, job):
    part = {"command": ["python", "-m", "a.driver"], "args": []}
    executor(job, "Make").update(
        command=["timeout", "9", "python", "-m", "a.entry"],
        args=["--executor_class_path", "b.executor.Executor"],
        lifecycle={"preCacheCheck": part},
    )
    assert rehearsed().executor_modules() == ["a.driver", "a.entry", "b.executor"]
