"""What a run achieved, from what its nodes put out."""

import json
import math

import pytest

from slipway.components.pusher.manifest import Manifest
from slipway.pipeline.runs.outcome import (
    complete_outcome,
    exit_code,
    nodes_in_the_way,
    read_stops,
    read_verdict,
)
from slipway.pipeline.runs.record import NodeRecord, RunRecord, verdict_path
from slipway.pipeline.screen.verdict_table import verdict_lines
from slipway.pipeline.screen.wording import summary, training_lines
from slipway.pipeline.tracking.run_facts import final_metrics, parameters


def artifact(type_name, uri="nowhere", **properties):
    return {"uri": str(uri), "type": type_name, "properties": properties}


def gate(folder, *, blessed):
    verdict = {"metrics": {"auc": 0.95}, "reasons": ["auc 0.95, meets at least 0.94"]}
    (folder / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    outputs = {"blessing": [artifact("ModelBlessing", folder, blessed=int(blessed))]}
    return NodeRecord("ModelGate", type="ModelGate", state="complete", outputs=outputs)


def pusher(**properties):
    return NodeRecord(
        "Pusher", type="Pusher", state="complete", outputs={"m": [artifact("PushedModel", **properties)]}
    )


def outcome(*nodes):
    record = RunRecord("run-1", "taxi", nodes=list(nodes))
    complete_outcome(record)
    return record


def test_blessing_comes_with_metrics_and_reasons(tmp_path):
    record = outcome(gate(tmp_path, blessed=True))
    assert record.blessed is True
    assert record.metrics == {"auc": 0.95}
    assert record.blessing_reasons == ["auc 0.95, meets at least 0.94"]


@pytest.mark.parametrize(("blessed", "told"), [(True, ["Pusher"]), (False, ["ModelGate", "Pusher"])])
def test_nodes_in_the_way_are_those_that_failed_and_gates_that_did_not_bless(tmp_path, blessed, told):
    record = outcome(gate(tmp_path, blessed=blessed), NodeRecord("Pusher", state="failed"))
    assert nodes_in_the_way(record) == told


def test_training_tells_its_verdict(tmp_path):
    result = {"verdict": "compute-bound", "speed": {"step_ms": 1.0}, "time": {"goodput": 0.9}, "steps": 5}
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    outputs = {"model_run": [artifact("ModelRun", tmp_path)]}
    trainer = NodeRecord("Trainer", type="Trainer", state="complete", outputs=outputs)
    assert outcome(trainer).training == {name: result[name] for name in ("verdict", "speed", "time")}
    outputs["model_run"] = [artifact("ModelRun", tmp_path / "of another trainer")]
    assert outcome(trainer).training == {}


def test_training_tells_what_was_tuned_and_its_smaller_forms(tmp_path):
    forms = [{"kind": "litert_int8", "size_bytes": 54000, "change": {"accuracy": -0.001}}]
    result = {"verdict": "compute-bound", "tuned": {"units": 32}, "exports": forms, "steps": 5}
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    trainer = NodeRecord(
        "Trainer", type="Trainer", state="complete", outputs={"model_run": [artifact("ModelRun", tmp_path)]}
    )
    told = outcome(trainer).training
    assert (told["tuned"], told["exports"]) == ({"units": 32}, forms)


@pytest.mark.parametrize(
    "odd",
    [
        {"verdict": 3},
        {"speed": 3.2},
        {"time": [0.5]},
        {"tuned": ["units"]},
        {"exports": ["model.onnx"]},
        {"exports": [{"kind": "onnx"}]},
    ],
)
def test_what_a_trainer_of_one_s_own_writes_otherwise_is_not_shown(tmp_path, odd):
    result = {"verdict": "fine", "speed": {"step_ms": None}} | odd
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    trainer = NodeRecord(
        "Trainer", type="Trainer", state="complete", outputs={"model_run": [artifact("ModelRun", tmp_path)]}
    )
    told = outcome(trainer)
    assert told.training == {name: value for name, value in result.items() if name not in odd}
    assert list(training_lines(told.training)) == []
    assert parameters(told) == {}
    assert [point.name for point in final_metrics(told)] == ["wall_s"]


def test_pushed_version_is_named_with_its_path():
    record = outcome(pusher(pushed=1, pushed_destination="/srv/taxi/17", pushed_version="17"))
    assert record.pushed == {"version": "17", "path": "/srv/taxi/17"}


def test_version_that_is_served_instead_of_the_pushed_one_is_named(tmp_path):
    for version in ("17", "18"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "saved_model.pb").write_bytes(b"")
    older, newest = (
        outcome(pusher(pushed=1, pushed_destination=str(tmp_path / version))) for version in ("17", "18")
    )
    assert older.pushed == {"version": "17", "path": str(tmp_path / "17"), "live": "18"}
    assert "live" not in newest.pushed


@pytest.mark.parametrize(
    ("source", "before", "own", "told"),
    [
        ("d/{YYYY}-{MM}-{DD}/*.csv", "20755", "20740", "whose span 2026-10-29 is later than its 2026-10-14"),
        ("d/{SPAN}/*.csv", "12", "9", "whose span 12 is later than its 9"),
        ("d/{SPAN}/*.csv", "9", "12", None),
        ("d/{SPAN}/*.csv", "12", "12", None),
        ("d/*.csv", None, None, None),
    ],
)
def test_data_of_an_earlier_span_than_the_version_before_is_told(tmp_path, source, before, own, told):
    for version, span in (("16", "99"), ("17", before), ("18", own)):
        data = {"source": source} | ({"span": span} if span else {})
        (tmp_path / version).mkdir()
        (tmp_path / version / "saved_model.pb").write_bytes(b"")
        (tmp_path / version / "manifest.json").write_bytes(Manifest({}, {"data": data}).to_bytes())
    node = pusher(pushed=1, pushed_destination=str(tmp_path / "18"))
    assert outcome(node).pushed.get("over") == (told and f"version 17, {told}")
    node.state = "cached"
    assert "over" not in outcome(node).pushed


def test_folder_of_versions_that_cannot_be_read_does_not_keep_a_run_from_its_outcome():
    path = f"/{'too_long' * 99}/17"
    assert outcome(pusher(pushed=1, pushed_destination=path)).pushed == {"version": "17", "path": path}


def test_a_version_that_a_pusher_of_ones_own_gives_as_a_number_can_be_read_again():
    record = outcome(pusher(pushed=1, pushed_version=7, pushed_destination="gs://b/7"))
    assert RunRecord.from_json(record.to_json()).pushed == {"version": "7", "path": "gs://b/7"}


def test_nothing_is_pushed_when_the_pusher_held_back():
    assert outcome(pusher(pushed=0)).pushed is None


def test_what_a_resolver_found_is_no_outcome_of_this_run():
    outputs = {"model_blessing": [artifact("ModelBlessing", blessed=1)]}
    record = outcome(NodeRecord("Baseline", type="Resolver", state="complete", outputs=outputs))
    assert record.blessed is None


def test_evaluators_blessing_without_an_answer_does_not_count(tmp_path):
    outputs = {"blessing": [artifact("ModelBlessing")]}
    evaluator = NodeRecord("Evaluator", type="Evaluator", state="complete", outputs=outputs)
    assert outcome(gate(tmp_path, blessed=False), evaluator).blessed is False


def test_blessing_of_another_pipeline_needs_no_verdict(tmp_path):
    outputs = {"blessing": [artifact("ModelBlessing", tmp_path, blessed=1)]}
    record = outcome(NodeRecord("Evaluator", type="Evaluator", state="cached", outputs=outputs))
    assert (record.blessed, record.metrics) == (True, {})


@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
@pytest.mark.parametrize("other", ["ModelBlessing", "InfraBlessing"])
def test_of_two_blessings_each_can_refuse(order, other):
    nodes = [
        NodeRecord(name, state="complete", outputs={"b": [artifact(kind, blessed=blessed)]})
        for name, kind, blessed in zip(("First", "Second"), ("ModelBlessing", other), order, strict=True)
    ]
    record = outcome(*nodes)
    refused = ("First", "Second")[order.index(0)]
    assert (record.blessed, record.blessing_reasons) == (False, [f"{refused} did not bless the model"])
    assert exit_code(record) == 3


def test_pusher_that_does_not_say_where_it_pushed_left_the_model_in_its_artifact(tmp_path):
    outputs = {"pushed": [artifact("PushedModel", tmp_path / "7", pushed=1)]}
    record = outcome(NodeRecord("OwnPusher", state="complete", outputs=outputs))
    assert record.pushed == {"version": "7", "path": str(tmp_path / "7")}


def test_verdict_of_a_gate_that_stopped_is_read_from_the_runs_folder(tmp_path):
    nodes = [
        NodeRecord("Gate", state="failed", is_stop=True),
        NodeRecord("Lost", state="failed", is_stop=True),
    ]
    record = RunRecord("run-1", "taxi", nodes=nodes, output=tmp_path)
    path = verdict_path(tmp_path / "runs/run-1", "Gate")
    path.parent.mkdir(parents=True)
    path.write_text('{"lines": ["tips: 3 rows"]}', encoding="utf-8")
    assert read_stops(record) == {"Gate": {"lines": ["tips: 3 rows"]}, "Lost": {}}


@pytest.mark.parametrize(
    ("properties", "metrics"),
    [
        ({"metrics": '{"example_count": 10, "auc": 0.5}'}, {"example_count": 10.0, "auc": 0.5}),
        ({}, {}),
        ({"metrics": "of another kind"}, {}),
        ({"metrics": '["auc"]'}, {}),
    ],
)
def test_without_a_gate_the_metrics_are_the_evaluators(properties, metrics):
    outputs = {"evaluation": [artifact("ModelEvaluation", **properties)]}
    assert outcome(NodeRecord("Evaluator", state="complete", outputs=outputs)).metrics == metrics


def test_a_gates_metrics_count_more_than_the_evaluators(tmp_path):
    outputs = {"evaluation": [artifact("ModelEvaluation", metrics='{"auc": 0.5}')]}
    evaluator = NodeRecord("Evaluator", state="complete", outputs=outputs)
    assert outcome(evaluator, gate(tmp_path, blessed=True)).metrics == {"auc": 0.95}


def test_a_resumed_run_tells_nothing_that_only_its_earlier_attempt_achieved(tmp_path):
    told = {"metrics": '{"auc": 0.97}'}
    evaluator = NodeRecord(
        "Evaluator", state="complete", outputs={"e": [artifact("ModelEvaluation", **told)]}
    )
    (tmp_path / "result.json").write_text('{"verdict": "compute-bound"}', encoding="utf-8")
    trainer = NodeRecord("Trainer", state="complete", outputs={"model_run": [artifact("ModelRun", tmp_path)]})
    record = outcome(trainer, evaluator, gate(tmp_path, blessed=True), pusher(pushed=1, pushed_version="1"))
    assert (record.blessed, record.metrics, record.pushed["version"]) == (True, {"auc": 0.95}, "1")

    told["metrics"] = '{"auc": 0.4}'
    evaluator.outputs = {"e": [artifact("ModelEvaluation", **told)]}
    record.nodes = [NodeRecord("Trainer", state="failed"), evaluator]
    complete_outcome(record)

    assert record.metrics == {"auc": 0.4}
    assert (record.blessed, record.blessing_reasons, record.pushed, record.training) == (None, [], None, {})


@pytest.mark.parametrize(
    ("states", "blessed", "code"),
    [
        (["complete", "cached"], True, 0),
        (["complete"], None, 0),
        (["complete", "failed"], None, 1),
        (["complete", "failed"], False, 1),
        (["complete"], False, 3),
    ],
)
def test_exit_code_tells_failure_before_gate_before_success(states, blessed, code):
    nodes = [NodeRecord(str(number), state=state) for number, state in enumerate(states)]
    assert exit_code(RunRecord("run-1", "taxi", nodes=nodes, blessed=blessed)) == code


@pytest.mark.parametrize(("others", "code"), [([], 3), (["complete"], 3), (["failed"], 1)])
def test_gate_that_stops_is_distinguished_from_a_node_that_fails(others, code):
    nodes = [NodeRecord("Gate", state="failed", is_stop=True)]
    nodes += [NodeRecord(str(number), state=state) for number, state in enumerate(others)]
    assert exit_code(RunRecord("run-1", "taxi", nodes=nodes)) == code


def test_what_a_gate_of_ones_own_writes_in_another_form_is_left_out(tmp_path):
    record = RunRecord("run-1", "taxi", state="stopped", output=tmp_path)
    record.nodes = [NodeRecord("Speed", state="failed", error={"message": "too slow"}, is_stop=True)]
    path = verdict_path(record.folder, "Speed")
    path.parent.mkdir(parents=True)
    own = {"message": "too slow", "findings": ["9 ms"], "lines": "9 ms", "override": "allow", "limit_ms": 5}
    path.write_text(json.dumps(own))
    assert read_stops(record) == {"Speed": {"message": "too slow", "limit_ms": 5}}
    assert any("too slow" in line for line in summary(record, stops=read_stops(record)))
    ours = {"findings": [{"what": "9 ms"}], "lines": ["9 ms"], "override": "accept_data"}
    path.write_text(json.dumps(ours))
    assert read_stops(record) == {"Speed": ours}


@pytest.mark.parametrize(
    "own",
    [
        {"metrics": {"auc": None}},
        {"metrics": {"auc": "high"}},
        {"metrics": ["auc"]},
        {"reasons": [{"metric": "auc"}]},
        {"checks": [{"name": "auc", "passed": True}]},
        {"checks": [{"metric": "auc", "required": 0.5, "got": 0.6, "passed": True}]},
        {"checks": [{"metric": "auc", "required": "at least 0.5", "got": "high", "passed": True}]},
        {"slices": ["hour=3"]},
        {"slices": {"hour=3": 0.5}},
        {"slices": {"hour=3": {"auc": "high"}}},
        {"baseline_metrics": {"auc": "high"}},
        {"telling_rows": ["overall"]},
        {"telling_rows": {"overall": "many"}},
        {"reference_models": ["linear"]},
        {"reference_models": {"linear": {"auc": "high"}}},
        {"intervals": [0.1, 0.2]},
        {"intervals": {"overall": {"auc": 0.5}}},
        {"intervals": {"overall": {"auc": ["low", "high"]}}},
        {"min_slice_rows": "many"},
        {"warnings": "slow"},
    ],
    ids=str,
)
def test_a_run_whose_gate_writes_another_verdict_ends_and_can_be_read(tmp_path, own):
    (tmp_path / "verdict.json").write_text(json.dumps(own))
    outputs = {"blessing": [artifact("ModelBlessing", tmp_path, blessed=1)]}
    record = outcome(NodeRecord("Own", state="complete", outputs=outputs))
    verdict = read_verdict(record)
    assert record.blessed is True
    assert verdict == {}
    assert list(summary(record, verdict=verdict)) + list(verdict_lines(verdict))
    assert RunRecord.from_json(json.loads(json.dumps(record.to_json()))).metrics == {}


def test_verdict_that_was_cut_short_is_told_where_its_checks_would_be(tmp_path):
    record = outcome(gate(tmp_path, blessed=True))
    (tmp_path / "verdict.json").write_text('{"checks": [{"metric"')
    [line] = verdict_lines(read_verdict(record))
    assert line.startswith(
        f"note: {tmp_path}/verdict.json cannot be read: its 21 bytes are not complete JSON"
    )


def test_what_a_gate_writes_in_our_form_is_kept_with_values_that_are_unknown(tmp_path):
    ours = {
        "checks": [{"metric": "auc", "required": "at least 0.5", "got": None, "passed": True}],
        "baseline_metrics": {"auc": None},
        "slices": {"overall": {"auc": 0.5, "rmse": None}},
        "intervals": {"overall": {"auc": [0.4, math.nan]}, "hour=3": {}},
        "reference_models": {"linear": {"auc": 0.4, "rows": 9}},
        "telling_rows": {"overall": 7.5},
        "min_slice_rows": 20,
    }
    (tmp_path / "verdict.json").write_text(json.dumps(ours))
    outputs = {"blessing": [artifact("ModelBlessing", tmp_path, blessed=1)]}
    assert read_verdict(outcome(NodeRecord("Own", state="complete", outputs=outputs))).keys() == ours.keys()


def test_metric_beyond_floats_counts_as_an_infinite_one(tmp_path):
    """Python reads a whole number of any size, which no arithmetic takes."""
    text = '{"metrics": {"auc": NUMBER}, "checks": []}'.replace("NUMBER", "1" + "0" * 400)
    (tmp_path / "verdict.json").write_text(text, encoding="utf-8")
    outputs = {"blessing": [artifact("ModelBlessing", tmp_path, blessed=1)]}
    record = outcome(NodeRecord("Own", state="complete", outputs=outputs))
    assert record.metrics == {"auc": math.inf}
    assert list(summary(record, verdict=read_verdict(record)))
