import json

import pytest

from slipway.pipeline.report.flows import flows, size_words
from slipway.pipeline.runs.record import NodeRecord, RunRecord


@pytest.fixture
def node(tmp_path):
    """A node with one artifact of 1,500 bytes."""

    def make(name: str, kind: str, state: str = "complete", **properties):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "data").write_bytes(b"x" * 1500)
        made = {"uri": str(folder), "type": kind, "properties": properties}
        return NodeRecord(name, state=state, outputs={"made": [made]})

    return make


def test_each_node_tells_its_rows_in_its_own_way(node, tmp_path):
    nodes = [
        node("Ingest", "schemas.Quarantine", rows_out=90, rows_in=100),
        node("StatisticsGen", "ExampleStatistics"),
        node("Transform", "TransformGraph"),
        node("Trainer", "ModelRun"),
        node("Evaluator", "ModelEvaluation"),
    ]
    (tmp_path / "Trainer" / "result.json").write_text(json.dumps({"train_rows": 60, "eval_rows": 29}))
    record = RunRecord("r", "w", nodes=nodes, metrics={"example_count": 29.0})

    found = flows(record, {"train": 60, "eval": 30})

    assert {name: flow.rows for name, flow in found.items()} == {
        "Ingest": 90, "StatisticsGen": 90, "Transform": None, "Trainer": 89, "Evaluator": 29,
    }  # fmt: skip
    assert (found["Ingest"].words, found["Transform"].words) == ("90 rows, 1.5 kB", "1.5 kB")


def test_what_is_gone_or_elsewhere_or_not_done_has_no_size(node):
    gone = node("gone", "Model")
    gone.outputs["made"][0]["uri"] = "/nowhere/at/all"
    there = node("there", "ModelRun")
    there.outputs["made"][0]["uri"] = "gs://bucket/model"
    record = RunRecord("r", "w", nodes=[gone, there, node("failed", "Model", state="failed")])

    assert {name: flow.words for name, flow in flows(record, {}).items()} == {"gone": "", "there": ""}


def test_what_was_pushed_is_not_counted_with_the_outputs(node, tmp_path):
    pusher = node("Pusher", "PushedModel", pushed_destination=str(tmp_path))

    assert flows(RunRecord("r", "w", nodes=[pusher]), {})["Pusher"].size_bytes == 1500


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (99_700, "100 kB"), (999_600, "1 MB"), (3.2e9, "3.2 GB")],
)
def test_a_size_has_two_digits_and_its_unit(size_bytes, words):
    assert size_words(int(size_bytes)) == words
