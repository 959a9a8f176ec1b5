"""Rehearsals of the taxi workload, beside the local run that all tests share.

Seen only here: the job's own commands carry a real workload through gs://; what the image lacks is found out.
As a process of its own, which imports TFX and listens to nobody, a rehearsal runs in test_rehearse_fares.py.

Whole rehearsals are external. `make test` sees a rehearsal of all constructs beside a local run in
test_any_pipeline.py, what a task does with cache, conditions, look-ups and a lost artifact in
tests/unit/pipeline/cloud/rehearsal/, and a real workload up to the first task that fails in the last test
here.
"""

import itertools
import json
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from copied import commands_in
from installed import needed
from stored_names import stored_names

needed("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = [pytest.mark.slow]

ON_GS = (
    "--set", "cloud.cache=true", "--set", "cloud.image=slipway:1.0", "--root", "gs://bucket/pipelines",
)  # fmt: skip
COMPARED = (
    "Ingest.examples",
    "StatisticsGen.statistics",
    "SchemaGen.schema",
    "ExampleValidator.anomalies",
    "Transform.transform_graph",
    "Transform.transformed_examples",
    "Trainer.model",
    "ModelGate.blessing",
)


def record_of(output):
    [latest] = sorted((output / "rehearsal" / "runs").glob("*/run.json"))[-1:]
    return json.loads(latest.read_text())


@pytest.fixture(scope="module")
def first(warm_runner, fewer, cloud_here, output, gs):
    """A rehearsal of what was run here, with its artifacts on gs://."""
    pushed = warm_runner("run", *fewer, "--output", str(output))  # from the copy, whose Pusher has not run
    assert pushed.returncode == 0, pushed.stderr
    finished = cloud_here("rehearse", *fewer, *ON_GS, "--output", str(output), **gs)
    return finished, record_of(output)


@pytest.mark.external
def test_rehearsal_runs_every_task_and_makes_what_the_local_run_made(first, output):
    finished, record = first
    assert finished.returncode == 0, finished.stderr
    assert {node["state"] for node in record["nodes"]} == {"complete"}
    [equal] = [line for line in finished.stderr.splitlines() if line.startswith("Equal to the local run")]
    assert [name for name in COMPARED if name not in equal] == []
    assert "Differs" not in finished.stderr
    assert "Not compared" not in finished.stderr
    pushed = Path(record["pushed"]["path"])
    assert pushed.is_relative_to(output / "rehearsal" / "serving"), "never to the real destination"
    assert (pushed / "saved_model.pb").is_file()


@pytest.mark.external
def test_artifacts_are_on_gs_and_not_here(first, output, gs):
    _, record = first
    stored = stored_names(gs["STORAGE_EMULATOR_HOST"])
    for part in (
        "Ingest_1/examples/Split-train/",
        "Trainer_1/model/Format-Serving/saved_model.pb",
        "ModelGate_1/blessing/BLESSED",
    ):
        assert any(name.startswith(f"pipelines/{record['run_id']}/{part}") for name in stored), stored
    assert not (output / "rehearsal" / "artifacts").exists()


@pytest.mark.external
def test_tasks_ran_from_the_copy_of_the_image_and_their_logs_are_kept(first, output, project):
    _, record = first
    run = output / "rehearsal" / "runs" / record["run_id"]
    job = json.loads((run / "job.json").read_text())
    assert str(project) not in json.dumps(job["pipelineSpec"])
    log = (run / "logs" / "Ingest.log").read_text()
    assert "Calculated fingerprint" in log, "the driver's"
    assert "Starting executor" in log
    assert str(output / "rehearsal" / "image" / "schemas" / "taxi.pbtxt") in log
    for node in ("Transform", "Evaluator"):
        assert "TFX's own executor" not in (run / "logs" / f"{node}.log").read_text(), "ours reads gs://, too"


@pytest.mark.external
def test_second_rehearsal_takes_equal_tasks_from_the_cache_finds_the_baseline_and_a_gate_ends_it(
    first, fewer, cloud_here, output, gs
):
    limits = ("--set", "evaluate.thresholds.auc.min=0.999")
    finished = cloud_here("rehearse", *fewer, *limits, *ON_GS, "--output", str(output), **gs)
    assert finished.returncode == 3, finished.stderr
    record = record_of(output)
    states = {node["id"]: node["state"] for node in record["nodes"]}
    for task in ("Ingest", "StatisticsGen", "SchemaGen", "Transform", "Trainer"):
        assert states[task] == "cached", states
    assert states["ModelGate"] == "complete"
    assert "needs at least 0.999" in finished.stderr
    [gate] = [node for node in record["nodes"] if node["id"] == "ModelGate"]
    verdict = json.loads(Path(gate["outputs"]["blessing"][0]["uri"], "verdict.json").read_text())
    assert verdict["baseline_metrics"], "the model of the first rehearsal is compared with"
    assert record["pushed"] is None
    assert "local_runner.py run" not in finished.stderr, "which would be another run"
    [pass_it] = re.findall(r"hint: (.* --bless 'why it is right')", finished.stderr)
    words = shlex.split(pass_it.replace("why it is right", "seen with the owner"))
    assert words[1] == "cloud_runner.py"
    passed = cloud_here(*words[2:], **gs)
    assert passed.returncode == 0, passed.stderr
    record = record_of(output)
    assert record["overrides"] == {"bless": "seen with the owner"}
    assert record["pushed"]


@pytest.mark.external
def test_kubeflow_carries_taxi_from_the_first_model_to_the_second_with_and_without_ml_metadata(
    first_run, fewer, cloud_here, output
):
    cached = ("--set", "cloud.cache=true", "--set", "cloud.image=slipway:1.0", "--output", str(output))
    finished = cloud_here("rehearse", *fewer, *cached, "--service", "kubeflow")
    assert finished.returncode == 0, finished.stderr
    record = record_of(output)
    assert {node["state"] for node in record["nodes"]} == {"complete"}
    [equal] = [line for line in finished.stderr.splitlines() if line.startswith("Equal to the local run")]
    assert [name for name in COMPARED if name not in equal] == []
    assert "Differs" not in finished.stderr
    assert _verdict(record)["baseline_metrics"] == {}, "no rehearsal of another service is looked at"

    another = ("--set", "evaluate.serving=null", "--service")
    first = record
    for epochs, service in enumerate(("kubeflow", "kubeflow-without-mlmd"), start=4):
        finished = cloud_here("rehearse", *cached, *another, service, "--set", f"train.epochs={epochs}")
        assert finished.returncode == 0, finished.stderr
        second = record_of(output)
        states = {node["id"]: node["state"] for node in second["nodes"]}
        assert (states["Transform"], states["Trainer"]) == ("cached", "complete"), states
        assert _verdict(second)["baseline_metrics"] == _verdict(first)["metrics"], "the earlier model's"
        assert second["metrics"] == _verdict(second)["metrics"], "not those looked up"
        assert second["pushed"]["version"] != first["pushed"]["version"]
        first = second

    transformed = _node(second, "Transform")["outputs"]["transformed_examples"][0]
    assert "slipway_files" not in transformed["properties"], "of the component's own only"
    store = output / "rehearsal" / "artifacts"
    [made] = store.glob(f"taxi/{record['run_id']}/Transform_1/*/transformed_examples")
    shutil.rmtree(made)
    finished = cloud_here("rehearse", *cached, *another, service, "--set", "train.epochs=6")
    assert finished.returncode == 1, finished.stderr
    third = record_of(output)
    states = {node["id"]: node["state"] for node in third["nodes"]}
    assert (states["Transform"], states["Trainer"]) == ("cached", "failed"), "as the service's cache has it"
    [told] = [line for line in finished.stderr.splitlines() if line.startswith("  Trainer: ")]
    place = f"minio://rehearsal/{made.relative_to(store)}"
    assert "its input examples is gone from the store: " in told
    assert re.search(rf"{place} has 0 of its \d+ files; Transform made it", told)
    assert "run Transform again, past the cache: --set cloud.cache=false" in finished.stderr
    log = (output / "rehearsal" / "runs" / third["run_id"] / "logs" / "Trainer.log").read_text()
    assert "Starting executor" not in log


def test_store_that_cannot_be_used_is_told_before_anything_runs(cloud_here, s3_server, tmp_path):
    words = ("rehearse", "taxi", "--service", "kubeflow", "--output", str(tmp_path), "--root")
    finished = cloud_here(*words, "s3://nobody-has-this-bucket/x", **s3_server.variables)
    assert finished.returncode == 1
    assert (
        "error: s3://nobody-has-this-bucket/x: there is no bucket 'nobody-has-this-bucket'" in finished.stderr
    )
    finished = cloud_here(*words, "minio://bucket/x", **{**s3_server.variables, "AWS_ENDPOINT_URL": ""})
    assert finished.returncode == 1
    assert "hint: set AWS_ENDPOINT_URL to the store's address" in finished.stderr
    assert not (tmp_path / "rehearsal" / "runs").exists()


def test_cluster_that_tasks_cannot_reach_is_told_before_anything_runs(cloud_here, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        endpoint = f"127.0.0.1:{gone.getsockname()[1]}"
    beam = f"beam={{runner: flink, options: {{job_endpoint: '{endpoint}'}}}}"
    words = ("rehearse", *ON_GS, "--set", beam, "--output", str(tmp_path))
    for more, told in (
        ((), f"nothing answers at {endpoint}"),
        (("--containers",), f"{endpoint} is on the machine that asks"),
    ):
        finished = cloud_here(*words, *more)
        assert finished.returncode == 2
        assert f"beam.options.job_endpoint: {told}" in finished.stderr
    assert not (tmp_path / "rehearsal" / "runs").exists()


@pytest.mark.external
def test_kubeflow_finds_its_first_model_s_records_on_s3_and_carries_the_artifacts_there(
    fewer, cloud_here, s3_server, tmp_path
):
    bucket = s3_server.make_bucket().removeprefix("s3://")
    where = ("--service", "kubeflow", "--root", f"minio://{bucket}/pipelines", "--output", str(tmp_path))
    made = []
    for epochs in ((), ("--set", "train.epochs=4", "--set", "evaluate.serving=null")):
        finished = cloud_here("rehearse", *fewer, *epochs, *where, **s3_server.variables)
        assert finished.returncode == 0, finished.stderr
        made.append(record_of(tmp_path))
    first, second = made
    assert _verdict(first)["baseline_metrics"] == {}
    assert _verdict(second)["baseline_metrics"] == _verdict(first)["metrics"]
    assert first["pushed"]["version"] != second["pushed"]["version"]
    written = [each for each in s3_server.requests() if each.startswith(f"PUT /{bucket}/pipelines/")]
    for part in (
        rf"{first['run_id']}/Trainer_1/[\w-]+/model/Format-Serving/saved_model\.pb",
        r"records/taxi/tfx\.ModelBlessing/\d+-\w+\.json",
        r"checkpoints/taxi/\w+/step-\d+\.npz",
    ):
        assert any(re.search(part, each) for each in written), (part, written)
    assert not (tmp_path / "rehearsal" / "artifacts").exists()
    told = "".join(path.read_text() for path in (tmp_path / "rehearsal/runs").rglob("*.json"))
    assert s3_server.variables["AWS_SECRET_ACCESS_KEY"] not in told


def _verdict(record):
    return json.loads(
        Path(_node(record, "ModelGate")["outputs"]["blessing"][0]["uri"], "verdict.json").read_text()
    )


def _node(record, name):
    [found] = [node for node in record["nodes"] if node["id"] == name]
    return found


HANDLER = """
import pathlib

from tfx import v1 as tfx


@tfx.orchestration.experimental.exit_handler
def Tell(status: tfx.dsl.components.Parameter[str], file: tfx.dsl.components.Parameter[str]):
    told = pathlib.Path(file)
    told.write_text(status)
    [run] = told.parent.glob("out/rehearsal/runs/*/run.json")
    told.with_name("meanwhile.json").write_text(run.read_text())


def tell():
    return Tell(status=tfx.orchestration.experimental.FinalStatusStr(), file="FILE")
"""


def test_code_that_is_not_in_the_image_is_found_out_and_the_exit_handler_told(
    warm, warm_runner, project, taxi_csv, tmp_path, monkeypatch
):
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    copy = tmp_path / "project"
    for name in listed:
        if (project / name).is_file() or (project / name).is_symlink():  # slipway/ links to folders
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(project / name, copy / name, follow_symlinks=False)
    (copy / "only_here.py").write_text("LIMIT = 3\n")
    preprocessing = copy / "workloads" / "taxi" / "preprocessing.py"
    preprocessing.write_text(f"import only_here\n{preprocessing.read_text()}")
    (copy / "workloads" / "notify.py").write_text(HANDLER.replace("FILE", str(tmp_path / "told.json")))
    handler = ("--set", "cloud.exit_handler=workloads.notify.tell")
    output = ("--output", str(tmp_path / "out"))
    # What fails is the first task after the data gate, and before it 600 trips are as good as all.
    with taxi_csv.open(encoding="utf-8") as data:
        (copy / "workloads" / "trips.csv").write_text("".join(itertools.islice(data, 601)), encoding="utf-8")
    settings = ("--set", "train.epochs=1", "--set", "data.source=workloads/trips.csv")
    monkeypatch.setenv("CI", "true")
    with commands_in(copy, warm) as call:
        finished = call("cloud_runner", "rehearse", *settings, *handler, *output)
    assert finished.returncode == 1, finished.stderr
    [told] = [line for line in finished.stderr.splitlines() if line.startswith("  Transform: ")]
    assert told.endswith("only_here, which workloads/taxi/preprocessing.py imports, is not in the image")
    hint = finished.stderr.splitlines()[-1]
    assert hint.startswith("hint: ")
    assert " cloud_runner.py rehearse --set train.epochs=1 " in hint
    status = json.loads((tmp_path / "told.json").read_text())
    assert (status["state"], status["pipelineTaskName"]) == ("FAILED", "tfx-dag")
    assert "only_here" in status["error"]["message"]
    states = {node["id"]: node["state"] for node in record_of(tmp_path / "out")["nodes"]}
    assert (states["Tell"], states["Transform"], states["Trainer"]) == ("complete", "failed", "skipped")
    meanwhile = json.loads((tmp_path / "meanwhile.json").read_text())
    assert {node["id"]: node["state"] for node in meanwhile["nodes"]} == states | {"Tell": "running"}
    shown = warm_runner("show", "--output", str(tmp_path / "out" / "rehearsal"))
    assert "resume" not in shown.stdout + shown.stderr, "a rehearsal starts anew"
    assert re.search(r"^hint: \S*python\S* \S*cloud_runner\.py rehearse", shown.stdout, re.MULTILINE)
