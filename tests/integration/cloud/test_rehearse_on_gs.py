"""The digits workload with its artifacts on gs://, beside a local run of the same."""

import json
import urllib.request

import pytest

pytest.importorskip("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = pytest.mark.slow

SETTINGS = (
    "digits",
    "--set",
    "train.epochs=1",
    "--set",
    "evaluate.thresholds={sparse_categorical_accuracy: {min: 0.2}}",
)


def test_artifacts_go_through_gs_and_are_what_the_local_run_made(local_runner, cloud_runner, gs, tmp_path):
    output = ("--output", str(tmp_path))
    local = local_runner("run", *SETTINGS, *output)
    assert local.returncode == 0, local.stderr
    finished = cloud_runner("rehearse", *SETTINGS, *output, "--root", "gs://bucket/pipelines", **gs)
    assert finished.returncode == 0, finished.stderr
    [run] = (tmp_path / "rehearsal" / "runs").glob("*/run.json")
    record = json.loads(run.read_text())
    assert {node["state"] for node in record["nodes"]} == {"complete"}
    [equal] = [line for line in finished.stderr.splitlines() if line.startswith("Equal to the local run")]
    for name in ("Ingest.examples", "Transform.transformed_examples", "Trainer.model", "ModelGate.blessing"):
        assert name in equal
    assert "Not compared" not in finished.stderr
    stored = _names(gs["STORAGE_EMULATOR_HOST"])
    run_id = record["run_id"]
    for part in (
        "Ingest_1/examples/Split-train/",
        "Trainer_1/model/Format-Serving/saved_model.pb",
        "ModelGate_1/blessing/BLESSED",
    ):
        assert any(name.startswith(f"pipelines/{run_id}/{part}") for name in stored), stored
    assert not (tmp_path / "rehearsal" / "artifacts").exists()


def _names(store):
    names, page = [], ""
    while True:
        with urllib.request.urlopen(f"{store}/storage/v1/b/bucket/o?pageToken={page}", timeout=10) as answer:  # noqa: S310
            found = json.load(answer)
        names += [item["name"] for item in found.get("items", ())]
        page = found.get("nextPageToken", "")
        if not page:
            return names
