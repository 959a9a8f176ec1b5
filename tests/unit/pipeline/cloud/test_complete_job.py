"""What is filled into a compiled job."""

import copy
import json

import pytest
from taxi_workload import taxi_workload

from slipway.pipeline.cloud.complete_job import complete, producers_of, to_text
from slipway.pipeline.errors import ConfigError

ROOT = "gs://bucket/root"


@pytest.fixture
def job():
    """Ingest and Trainer in containers, and a resolver between."""

    def container(*args):
        return {"container": {"image": "i", "command": ["python", "-m", "m"], "args": list(args)}}

    executors = {"e1": container("{{$}}"), "e2": {"resolver": {}}, "e3": container("{{$}}")}
    executors["e1"]["container"]["lifecycle"] = {"preCacheCheck": {"command": ["python"], "args": ["{{$}}"]}}
    names = ("Ingest", "Baseline", "Trainer")
    tasks = {name: {"componentRef": {"name": name}} for name in names}
    tasks["Baseline"]["inputs"] = {
        "artifacts": {"input": {"taskOutputArtifact": {"producerTask": "Ingest", "outputArtifactKey": "x"}}}
    }
    return {
        "displayName": "taxi",
        "labels": {"tfx_version": "1-21-0"},
        "pipelineSpec": {
            "schemaVersion": "2.1.0",
            "components": {n: {"executorLabel": f"e{i}"} for i, n in enumerate(names, 1)},
            "deploymentSpec": {"executors": executors},
            "root": {"dag": {"tasks": tasks}},
        },
    }


def containers(job):
    executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
    return executors["e1"]["container"], executors["e3"]["container"]


def tasks(job):
    return job["pipelineSpec"]["root"]["dag"]["tasks"]


def test_condition_names_its_inputs_as_the_task_does(job):
    taken = {"taskOutputArtifact": {"producerTask": "Ingest", "outputArtifactKey": "x"}}
    of_another = "inputs.artifacts['_Baseline.y'].artifacts[0].uri == '_Ingest.x'"
    condition = "(inputs.artifacts['{}'].artifacts[0].metadata['blessed'] == 1.0) && " + of_another
    task = tasks(job)["Trainer"]
    task["inputs"] = {"artifacts": {"given": taken}}
    task["triggerPolicy"] = {"condition": condition.format("_Ingest.x")}
    complete(job, taxi_workload(), root=ROOT)
    assert task["triggerPolicy"]["condition"] == condition.format("given")


def test_every_container_gets_resources_and_a_task_s_own_come_first(job):
    config = taxi_workload("cloud.tasks={Trainer: {memory_gb: 64, accelerator: NVIDIA_TESLA_T4}}")
    ingest, trainer = containers(complete(job, config, root=ROOT))
    assert ingest["resources"] == {
        "cpuLimit": 4.0, "resourceCpuLimit": "4", "memoryLimit": 16.0, "resourceMemoryLimit": "16G"
    }  # fmt: skip
    assert (trainer["resources"]["cpuLimit"], trainer["resources"]["memoryLimit"]) == (4.0, 64.0)
    assert trainer["resources"]["accelerator"]["type"] == "NVIDIA_TESLA_T4"
    assert trainer["resources"]["accelerator"]["count"] == "1"


def test_retries_and_time_limit_of_a_node_reach_its_task(job):
    config = taxi_workload("nodes={Trainer: {retries: 2, timeout_s: 90.5, backoff_s: 30}}")
    ingest, trainer = containers(complete(job, config, root=ROOT))
    assert tasks(job)["Trainer"]["retryPolicy"] == {
        "maxRetryCount": 2, "backoffDuration": "30s", "backoffFactor": 2.0, "backoffMaxDuration": "600s"
    }  # fmt: skip
    assert trainer["command"] == ["timeout", "--kill-after=10", "91", "python", "-m", "m"]
    assert ingest["command"] == ["python", "-m", "m"]
    assert "retryPolicy" not in tasks(job)["Ingest"]


def test_caching_is_said_for_every_container_labels_and_root_for_the_run(job):
    config = taxi_workload("cloud={cache: true, image: 'r/i:1', labels: {team: rides}}")
    complete(job, config, root=ROOT)
    assert tasks(job)["Ingest"]["cachingOptions"] == {"enableCache": True}
    assert "cachingOptions" not in tasks(job)["Baseline"]
    assert job["labels"] == {"tfx_version": "1-21-0", "team": "rides", "slipway_workload": "taxi"}
    assert job["runtimeConfig"] == {"gcsOutputDirectory": ROOT}


@pytest.mark.parametrize(
    ("task", "setting"),
    [
        ("Ingest", "data={source: null, format: bigquery, query: 'SELECT * FROM t'}"),
        ("DataGate", "data_gate.freshness={column: trip_start_timestamp, max_age_days: 2}"),
    ],
)
def test_task_whose_result_depends_on_what_no_service_compares_is_not_cached(job, task, setting):
    """A query's rows change, and data grows old, while its parameters stay the same."""
    tasks(job)[task] = {"componentRef": {"name": "Trainer"}}
    cached = "cloud={cache: true, image: 'r/i:1'}"
    complete(job, taxi_workload(cached, setting), root=ROOT)
    assert tasks(job)[task]["cachingOptions"] == {"enableCache": False}
    assert tasks(job)["Trainer"]["cachingOptions"] == {"enableCache": True}
    complete(job, taxi_workload(cached), root=ROOT)
    assert tasks(job)[task]["cachingOptions"] == {"enableCache": True}


def test_task_waits_for_whoever_makes_its_inputs(job):
    complete(job, taxi_workload(), root=ROOT)
    assert tasks(job)["Baseline"]["dependentTasks"] == ["Ingest"]
    assert "dependentTasks" not in tasks(job)["Ingest"]


def test_resolver_looks_for_artifacts_of_our_own_types_by_their_name(job):
    spec = job["pipelineSpec"]
    query = {"verdict": {"filter": 'schema_title="tfx.Artifact" AND state=LIVE'}}
    spec["deploymentSpec"]["executors"]["e2"] = {"resolver": {"outputArtifactQueries": query}}
    kind = {"artifactType": {"instanceSchema": "title: schemas.DataVerdict\ntype: object\n"}}
    spec["components"]["Baseline"]["outputDefinitions"] = {"artifacts": {"verdict": kind}}
    complete(job, taxi_workload(), root=ROOT)
    assert query["verdict"]["filter"] == 'schema_title="schemas.DataVerdict" AND state=LIVE'


def test_producer_of_a_parameter_is_named_as_its_task_is(job):
    output = {"producerTask": "Ingest_task", "outputParameterKey": "rows"}
    tasks(job)["Trainer"]["inputs"] = {"parameters": {"rows": {"taskOutputParameter": output}}}
    complete(job, taxi_workload(), root=ROOT)
    assert producers_of(tasks(job)["Trainer"]) == {"Ingest"}
    assert tasks(job)["Trainer"]["dependentTasks"] == ["Ingest"]


def test_parameter_from_another_task_is_of_the_type_that_this_puts_out(job):
    def types(kind):
        return {"parameters": {"rows": {"parameterType": kind}}}

    spec = job["pipelineSpec"]
    spec["components"]["Ingest"]["outputDefinitions"] = types("NUMBER_INTEGER")
    spec["components"]["Trainer"]["inputDefinitions"] = types("STRING")
    args = containers(job)[1]["args"]
    args += ["--json_serialized_inputs_spec_args", json.dumps(types("STRING"))]
    output = {"producerTask": "Ingest_task", "outputParameterKey": "rows"}
    tasks(job)["Trainer"]["inputs"] = {"parameters": {"rows": {"taskOutputParameter": output}}}
    complete(job, taxi_workload(), root=ROOT)
    assert spec["components"]["Trainer"]["inputDefinitions"] == types("NUMBER_INTEGER")
    assert json.loads(args[-1]) == types("NUMBER_INTEGER")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            "cloud.tasks={Trainr: {cpu: 8}}",
            "cloud.tasks.Trainr: the pipeline has no such task; nearest: Trainer",
        ),
        (
            "nodes={Baseline: {retries: 1}}",
            "nodes.Baseline: the pipeline has no such task on Vertex AI, which looks that up itself",
        ),
    ],
)
def test_setting_of_a_task_that_is_not_there_is_refused(job, setting, words):
    with pytest.raises(ConfigError, match=words):
        complete(job, taxi_workload(setting), root=ROOT)


def test_what_kubeflow_looks_up_in_a_container_may_have_limits_there(job):
    limits = "nodes={Baseline: {retries: 1}}"
    complete(job, taxi_workload(limits, "cloud.service=kubeflow"), root=ROOT)
    with pytest.raises(ConfigError, match=r"nodes\.Basline: .* no such task; nearest: Baseline"):
        complete(job, taxi_workload("nodes={Basline: {retries: 1}}", "cloud.service=kubeflow"), root=ROOT)


def test_limits_of_a_look_up_that_kubeflow_goes_without_are_refused(job):
    sets = ("cloud.service=kubeflow", "cloud.kubeflow.without_baseline=true")
    with pytest.raises(ConfigError, match=r"nodes\.Baseline: .* no such task with cloud.kubeflow") as refused:
        complete(job, taxi_workload("nodes={Baseline: {retries: 1}}", *sets), root=ROOT)
    assert refused.value.hint == "leave it out, or set that to false"


def test_task_that_wraps_the_others_hands_them_the_pipeline_s_parameters(job):
    spec = job["pipelineSpec"]
    tasks(job)["Ingest"]["inputs"] = {"parameters": {"span": {"componentInputParameter": "day"}}}
    spec["root"]["inputDefinitions"] = {"parameters": {"day": {"parameterType": "STRING"}, "other": {}}}
    spec["components"]["tfx-dag"] = {"dag": spec["root"]["dag"]}
    spec["root"]["dag"] = {"tasks": {"tfx-dag": {"componentRef": {"name": "tfx-dag"}}}}
    complete(job, taxi_workload(), root=ROOT)
    taken = {"parameters": {"day": {"parameterType": "STRING"}}}
    assert spec["components"]["tfx-dag"]["inputDefinitions"] == taken
    given = {"parameters": {"day": {"componentInputParameter": "day"}}}
    assert tasks(job)["tfx-dag"]["inputs"] == given


@pytest.mark.parametrize("wrapped", [lambda t: t, lambda t: json.dumps({"vocabulary": [t]})])
def test_parameter_that_names_a_file_of_this_machine_is_refused(job, tmp_path, wrapped):
    file = tmp_path / "words.txt"
    value = {"runtimeValue": {"constant": wrapped(str(file))}}
    tasks(job)["Trainer"]["inputs"] = {"parameters": {"custom_config": value}}
    complete(copy.deepcopy(job), taxi_workload(), root=ROOT)
    file.touch()
    with pytest.raises(ConfigError, match=f"Trainer would not find {file} .its parameter custom_config"):
        complete(job, taxi_workload(), root=ROOT)


def test_same_job_is_the_same_text(job):
    turned = dict(reversed(job.items()))
    assert list(turned) != list(job)
    assert to_text(turned) == to_text(job)
    assert json.loads(to_text(job)) == job
