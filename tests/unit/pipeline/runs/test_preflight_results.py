import json

from slipway.pipeline.runs.preflight_results import keep, last, of_run
from slipway.pipeline.runs.record import NodeRecord, RunRecord, verdict_path

DOCUMENT = {"format": 1, "workload": "taxi", "slices": []}


def test_last_result_of_a_workload_is_found_again(tmp_path):
    assert last(tmp_path, "taxi") == {}

    keep(tmp_path, {**DOCUMENT, "made_at": "then"})
    keep(tmp_path, DOCUMENT)

    assert last(tmp_path, "taxi") == DOCUMENT
    assert last(tmp_path, "digits") == {}


def test_a_damaged_file_is_taken_for_none(tmp_path):
    keep(tmp_path, DOCUMENT).write_text("{", encoding="utf-8")

    assert last(tmp_path, "taxi") == {}


def test_result_of_a_run_is_that_of_its_node(tmp_path):
    (tmp_path / "preflight.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    artifact = {"uri": str(tmp_path), "type": "schemas.PreflightReport", "properties": {}}
    node = NodeRecord("Preflight", state="complete", outputs={"report": [artifact]})

    assert of_run(RunRecord("r", "taxi", nodes=[node])) == DOCUMENT
    assert of_run(RunRecord("r", "taxi")) == {}


def test_result_of_a_run_that_it_stopped_is_in_the_verdict_that_was_kept(tmp_path):
    path = verdict_path(tmp_path / "runs" / "r", "Preflight")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"message": "no", "preflight": DOCUMENT}), encoding="utf-8")
    node = NodeRecord("Preflight", state="failed", is_stop=True)

    assert of_run(RunRecord("r", "taxi", nodes=[node], output=tmp_path)) == DOCUMENT
