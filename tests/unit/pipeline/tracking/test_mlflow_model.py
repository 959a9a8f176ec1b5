"""The pushed model in MLflow: its files, its signature, and one registered version of it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from slipway.components.pusher.manifest import Manifest
from slipway.components.pusher.signature import sign
from slipway.components.pusher.signing_keys import SigningKey, read_verify_key
from slipway.pipeline.runs.run_target import WorkloadRun
from slipway.pipeline.tracking.http_client import AnswerError, HttpClient
from slipway.pipeline.tracking.mlflow_model import ml_model, register, upload
from slipway.pipeline.tracking.tracker import TrackerError

URI = "mlflow-artifacts:/1/run 0/artifacts"


@pytest.fixture
def registered(mlflow, make_run):
    """Registers what a run has pushed, and returns the number."""
    record = make_run(pushed=True)

    def again():
        return register(HttpClient(mlflow.address), record, run_id="run 0", artifact_uri=URI)

    again.record = record
    return again


def test_a_version_has_its_files_and_its_signature(mlflow, registered):
    assert registered() == "1"
    top = "1/run 0/artifacts/model"
    assert mlflow.files.keys() == {
        f"{top}/MLmodel", f"{top}/requirements.txt", f"{top}/saved_model/saved_model.pb",
        f"{top}/saved_model/variables/variables.index", f"{top}/saved_model/manifest.json",
    }  # fmt: skip
    assert mlflow.files[f"{top}/saved_model/saved_model.pb"] == b"graph"
    assert mlflow.files[f"{top}/requirements.txt"] == b"tensorflow==2.21.0\nkeras==3.15.1\n"
    about = yaml.safe_load(mlflow.files[f"{top}/MLmodel"])
    assert about["flavors"]["tensorflow"]["signature_def_key"] == "serve_raw"
    assert about["utc_time_created"] == "2026-11-24 03:00:02"
    inputs, outputs = (json.loads(about["signature"][each]) for each in ("inputs", "outputs"))
    assert [(each["name"], *each["tensor-spec"].values()) for each in (*inputs, *outputs)] == [
        ("fare", "float32", [-1, 1]), ("company", "str", [-1]), ("outputs", "float64", [-1, 1]),
    ]  # fmt: skip
    [version] = mlflow.versions
    assert (version["source"], version["run_id"]) == (f"{URI}/model", "run 0")


def test_it_is_registered_once(mlflow, registered):
    assert [registered(), registered()] == ["1", "1"]
    assert len(mlflow.versions) == 1
    assert mlflow.paths().count("/api/2.0/mlflow/model-versions/create") == 1


def test_another_version_of_the_same_model_is_another(mlflow, registered):
    registered()
    mlflow.versions[0]["tags"][0]["value"] = "16"
    assert registered() == "2"


@pytest.mark.parametrize("place", ["gs://bucket/taxi/latest", "/nowhere/17"])
def test_of_what_is_no_version_nothing_is_sent(mlflow, registered, place):
    registered.record.pushed = {"version": "17", "path": place}
    assert registered() == f"none: {place} has no manifest, or is not there"
    assert mlflow.got == []


def test_a_damaged_version_is_not_sent(mlflow, registered):
    (Path(registered.record.pushed["path"]) / "saved_model.pb").write_bytes(b"grapH")
    with pytest.raises(TrackerError, match=r"was not sent the model: Version 17 in .* is not used"):
        registered()
    assert mlflow.files == {}


def test_only_a_version_that_the_workloads_key_has_signed_is_sent(mlflow, registered, tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    public = tmp_path / "signing.pub"
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    record = registered.record
    config = json.loads(record.target.target.config) | {"push": {"verify_key": str(public)}}
    record.target = replace(record.target, target=WorkloadRun(config=json.dumps(config)))
    with pytest.raises(TrackerError, match=r"was not sent the model: .*/17: it is not signed"):
        registered()
    assert mlflow.got == []
    version = Path(record.pushed["path"])
    made = Manifest.from_bytes((version / "manifest.json").read_bytes())
    manifest = replace(made, provenance={**made.provenance, "workload": "taxi"}).to_bytes()
    (version / "manifest.json").write_bytes(manifest)
    (version / "model.sig").write_bytes(sign(manifest, SigningKey(key, read_verify_key(str(public)))))
    assert registered() == "1"


def test_a_server_that_refuses_is_reported(mlflow, registered):
    for path in ("model-versions/search", "registered-models/create"):
        mlflow.refuses = {path: (403, {})}
        with pytest.raises(AnswerError, match="403"):
            registered()


def test_a_version_with_a_link_is_not_sent(registered):
    folder = Path(registered.record.pushed["path"])
    (folder / "link").symlink_to(folder)
    with pytest.raises(TrackerError, match=r"was not sent the model: .*is a link"):
        registered()


@pytest.mark.parametrize("uri", ["s3://bucket/1", "/srv/mlruns/1"])
def test_a_server_that_leaves_artifacts_to_its_clients_is_reported_with_what_to_do(mlflow, uri):
    with pytest.raises(TrackerError, match="--serve-artifacts and name an experiment"):
        upload(HttpClient(mlflow.address), uri, {"a": b""})


def test_a_model_without_our_signature_takes_examples_and_one_without_any_has_no_flavor(registered):
    shutil.rmtree(registered.record.pushed["path"])
    default = {"inputs": {}, "outputs": {}}
    about = yaml.safe_load(
        ml_model({"model": {"signatures": {"serving_default": default}}}, run_id="1", size_bytes=0)
    )
    assert about["flavors"]["tensorflow"]["signature_def_key"] == "serving_default"
    assert yaml.safe_load(ml_model({}, run_id="1", size_bytes=0))["flavors"] == {}
