"""What is told of a run, whatever the tracker."""

import json
import math

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.tracking.run_facts import (
    Point,
    begin_and_end_ms,
    curves,
    data_digests,
    final_metrics,
    node_data,
    parameters,
    run_data,
)


def test_parameters_are_the_settings_that_are_set_without_those_of_this_machine(make_run):
    record = make_run(mlflow="http://127.0.0.1:1")
    record.training = {"tuned": {"rate": 0.25}}
    assert parameters(record) == {
        "train.batch_size": "256", "train.hyperparameters.rate": "0.5", "evaluate.metrics": '["auc"]',
        "tuned.rate": "0.25",
    }  # fmt: skip


def test_a_run_of_no_workload_has_no_parameters():
    assert parameters(RunRecord("20261124-030000-0000", "own")) == {}


def test_metrics_that_are_no_numbers_are_left_out(make_run):
    found = list(final_metrics(make_run()))
    assert found == [Point("auc", 0.95), Point("speed/step_ms", 0.5), Point("wall_s", 2.5)]


def test_a_curve_goes_by_its_epochs_or_else_by_their_order():
    epochs = [{"loss": 1.0, "epoch": 3}, {"loss": math.inf, "lr": True}, {"loss": 2}]
    assert list(curves(epochs)) == [Point("training/loss", 1.0, 3), Point("training/loss", 2.0, 3)]


def test_data_is_named_by_file_and_digest():
    prints = {
        "Ingest": Fingerprint({"data:b.csv": "2", "data:a.csv": "1", "code:x.py": "3"}),
        "Trainer": Fingerprint({"data:a.csv": "1"}),
    }
    assert list(data_digests(prints).items()) == [("a.csv", "1"), ("b.csv", "2")]


def test_data_of_a_run_is_that_of_its_nodes(make_run):
    record = make_run()
    assert node_data(record) == {"Ingest": {"trips.csv": "5" * 64}}
    assert run_data(record) == {"trips.csv": "5" * 64}


def test_data_of_a_run_without_fingerprints_is_what_ingest_noted(make_run, tmp_path):
    record = make_run()
    (record.folder / "fingerprints.json").unlink()
    assert run_data(record) == {}
    file = {"name": "gs://b/trips.csv", "size_bytes": 12, "crc32c": "22620404"}
    (tmp_path / "summary.json").write_text(json.dumps({"files": [file]}), encoding="utf-8")
    artifact = {"uri": str(tmp_path), "type": "schemas.Quarantine", "properties": {}}
    record.nodes.append(NodeRecord("Read", "Ingest", "complete", outputs={"quarantine": [artifact]}))
    # Cloud Storage writes a checksum in base64, and so does the fingerprint of a local run.
    assert node_data(record) == {"Read": {"gs://b/trips.csv": "ImIEBA== 12"}}
    assert run_data(record) == {"gs://b/trips.csv": "ImIEBA== 12"}


def test_times_are_in_milliseconds(make_run):
    begun, ended = begin_and_end_ms(make_run())
    assert (begun % 1000, ended - begun) == (0, 2500)
    assert begun == 1795489200000
