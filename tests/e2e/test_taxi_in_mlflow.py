"""A taxi run in a real MLflow: a server in an environment of its own, read with MLflow's own client.

Seen only here: that MLflow takes what is sent, and reads of it what was meant.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from loopback import reserved_port

from slipway.pipeline.runs.history import History
from slipway.pipeline.tracking import opentelemetry, spool
from slipway.pipeline.tracking.sender import send_all

pytestmark = [pytest.mark.slow, pytest.mark.external]

LIMIT_S = 180.0
# Without the seven processes of its jobs, of which a tracked run asks nothing.
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}
# Read by their client: what a user sees of the run.
READ = """
import json, sys, mlflow
mlflow.set_tracking_uri(sys.argv[1])
client = mlflow.MlflowClient()
def steps(run):
    return sorted(each.step for each in client.get_metric_history(run.info.run_id, "training/loss"))
[experiment] = client.search_experiments(filter_string="name = 'taxi'")
runs = client.search_runs([experiment.experiment_id])
[version] = client.search_model_versions("name = 'taxi'")
model = mlflow.models.get_model_info("models:/taxi/1")
print(json.dumps({
    "runs": [{**run.data.to_dictionary(), "status": run.info.status, "name": run.info.run_name,
              "data": [each.dataset.digest for each in run.inputs.dataset_inputs],
              "files": [each.path for each in client.list_artifacts(run.info.run_id)],
              "loss": steps(run)}
             for run in runs],
    "version": {"tags": version.tags, "run": client.get_run(version.run_id).info.run_name},
    "inputs": [[each.name, str(each.type), list(each.shape)] for each in model.signature.inputs],
    "flavors": sorted(model.flavors),
    "spans": sorted(span.name for trace in mlflow.search_traces(locations=["0"], return_type="list")
                    for span in trace.data.spans),
}))
"""


@pytest.fixture(scope="module")
def folder(project):
    """The programs of MLflow's environment."""
    found = project / ".venv-mlflow" / "bin"
    if not found.exists():
        if os.environ.get("CI"):
            pytest.fail("there is no .venv-mlflow; .ci/run makes it")
        pytest.skip("there is no .venv-mlflow: `make mlflow` makes it")
    return found


@contextlib.contextmanager
def serving(folder, store, port):
    """A server until the end of the block."""
    command = [folder / "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    places = [
        "--backend-store-uri",
        f"sqlite:///{store}/mlflow.db",
        "--artifacts-destination",
        store / "files",
    ]
    with (store / "log").open("ab") as log:
        server = subprocess.Popen(
            [*command, *places], cwd=store, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip
        try:
            until = time.monotonic() + LIMIT_S
            while not _is_up(port):
                assert server.poll() is None, (store / "log").read_text()
                assert time.monotonic() < until
                time.sleep(0.1)
            yield
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _is_up(port):
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
        return True
    return False


def sent(output):
    """Waits until no tracker misses a run, or none can be told of one."""
    until = time.monotonic() + LIMIT_S
    while (waiting := send_all(output)) is None and time.monotonic() < until:
        time.sleep(0.1)
    return waiting


@pytest.fixture
def port():
    """Where the server is told to listen, and nobody does before."""
    with reserved_port() as found:
        yield found


def test_a_run_that_ended_while_the_server_was_down_is_there_with_the_next(
    folder, port, first_record, warm_runner, output, tmp_path, monkeypatch
):
    run = ("run", "--set", "train.epochs=3", "--set", f"track.mlflow=http://127.0.0.1:{port}")
    first = warm_runner(*run, "--output", str(output))
    assert first.returncode == 0, first.stderr
    [entry] = sent(output)
    assert entry.why == {"mlflow": "could not be reached (ConnectionError)"}
    doctor = warm_runner("doctor", "--output", str(output))
    assert "1 run not yet sent to it: could not be reached" in doctor.stdout

    with serving(folder, tmp_path, port):
        second = warm_runner(*run, "--output", str(output))
        assert second.returncode == 0, second.stderr
        assert sent(output) == spool.all_waiting(output) == []
        # A second time changes nothing.
        spool.put(output, entry)
        assert sent(output) == []
        # It is a collector of OpenTelemetry's spans as well; they go to the default experiment.
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-mlflow-experiment-id=0")
        opentelemetry.send(first_record, f"http://127.0.0.1:{port}")
        done = subprocess.run(
            [folder / "python", "-W", "ignore", "-c", READ, f"http://127.0.0.1:{port}"],
            env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])

    records = {record.run_id: record for record in History(output).runs()}
    assert len(found["runs"]) == 2
    for run in found["runs"]:
        record = records[run["name"]]
        assert run["status"] == "FINISHED"
        assert run["params"]["train.epochs"] == "3"
        assert {name: run["metrics"][name] for name in record.metrics} == pytest.approx(record.metrics)
        assert run["loss"] == [1, 2, 3]
        assert run["tags"]["slipway.pushed"] == Path(record.pushed["path"]).name
        assert run["tags"]["slipway.registered_version"] == "1"
        assert [len(digest) for digest in run["data"]] == [36]
        assert "report.html" in run["files"]
    # Both pushed this version; the earlier run, which could not be told at once, comes first.
    assert found["version"]["run"] == entry.run_id
    assert found["version"]["tags"]["slipway.version"] == records[entry.run_id].pushed["version"]
    assert ["fare", "float32", [-1, 1]] in found["inputs"]
    assert found["spans"] == sorted(["run taxi", *(node.id for node in first_record.nodes)])
    assert found["flavors"] == ["python_function", "tensorflow"]
