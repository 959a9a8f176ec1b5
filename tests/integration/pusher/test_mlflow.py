"""A version that was pushed to gs:// is registered in MLflow, from a strict store on loopback."""

import pytest
from tracker_double import MlflowDouble, served

from slipway.components.pusher.publish_to_bucket import publish_to_bucket
from slipway.components.pusher.version_store import version_store_at
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.tracking.http_client import HttpClient
from slipway.pipeline.tracking.mlflow_model import register
from slipway.pipeline.tracking.tracker import TrackerError

pytestmark = pytest.mark.slow

URI = "mlflow-artifacts:/1/run0/artifacts"


@pytest.fixture
def mlflow():
    with served(MlflowDouble()) as double:
        yield double


@pytest.fixture
def record(model, base):
    """A run that has pushed the model to the store."""
    done = publish_to_bucket(model, base=base, provenance={"workload": "taxi"})
    record = RunRecord("20261124-030000-0000", "taxi")
    record.pushed = {"version": str(done.version), "path": done.address}
    return record


def send(mlflow, record):
    return register(HttpClient(mlflow.address), record, run_id="run0", artifact_uri=URI)


def test_a_version_in_a_bucket_is_downloaded_and_registered_once(mlflow, record, cloud, base):
    assert send(mlflow, record) == "1"
    assert mlflow.files["1/run0/artifacts/model/saved_model/saved_model.pb"] == b"graph"
    digest = version_store_at(base).manifest(int(record.pushed["version"])).model_digest
    [version] = mlflow.versions
    assert {each["key"]: each["value"] for each in version["tags"]} == {
        "slipway.version": record.pushed["version"], "slipway.digest": digest, "slipway.run": record.run_id,
    }  # fmt: skip
    cloud.forget_requests()
    assert send(mlflow, record) == "1"
    assert not [each for each in cloud.requests() if "saved_model.pb" in str(each)]


def test_a_version_that_is_no_longer_there_is_not_registered(mlflow, record, base):
    record.pushed["path"] = f"{base}/17"
    assert send(mlflow, record) == f"none: {base}/17 has no manifest, or is not there"
    assert mlflow.got == []


def test_a_bucket_that_cannot_be_read_leaves_the_run_waiting(mlflow, record, cloud):
    cloud.fail({"kind": 403, "times": 100})
    with pytest.raises(TrackerError, match="was not sent the model: "):
        send(mlflow, record)
    assert mlflow.versions == []
