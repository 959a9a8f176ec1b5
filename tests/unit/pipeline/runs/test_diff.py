"""What diff tells of two runs, and what it leaves out."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.diff import SECTIONS, compare, read_fingerprints
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.run_target import Origin, RecordedRequest, WorkloadRun

PARTS = {
    "SchemaGen": {
        "code:schemas/taxi.pbtxt": "a" * 64,
        "stack:tfx": "1.21.0",
        "param:component": '"ImportSchemaGen"',
    },
    "Ingest": {"data:trips-01.csv": "b" * 64, "stack:tfx": "1.21.0"},
    "Transform": {"code:workloads/taxi/shared.py": "c" * 64, "stack:tfx": "1.21.0", "upstream:Ingest": "1"},
    "Trainer": {
        "code:workloads/taxi/shared.py": "c" * 64,
        "param:train.batch_size": "256",
        "stack:tfx": "1.21.0",
        "upstream:Transform": "2",
    },
    "Evaluator": {"external:latest blessed model": "none", "stack:tfx": "1.21.0"},
}


def run(run_id="old", **facts):
    nodes = [NodeRecord(node_id, type=node_id, state="complete", wall_s=10.0) for node_id in PARTS]
    return RunRecord(run_id, "taxi", state="complete", nodes=nodes, **facts)


def prints(**changed):
    """The fingerprints of PARTS; `changed` replaces parts of a node, None takes one away."""
    merged = {node: {**parts, **changed.get(node, {})} for node, parts in PARTS.items()}
    return {
        node: Fingerprint({k: v for k, v in parts.items() if v is not None}) for node, parts in merged.items()
    }


def difference(old=None, new=None, **changed):
    return compare(old or run(), new or run("new"), prints(), prints(**changed))


def changes(found):
    return [(change.section, change.name, change.old, change.new) for change in found.changes]


def test_equal_runs_have_no_difference():
    found = difference()
    assert found.text() == "No difference."
    assert found.to_json() == {"old": "old", "new": "new", **{name: [] for name in SECTIONS}, "notes": []}


def test_parameter_is_reported_with_its_old_and_new_value_and_its_node():
    found = difference(Trainer={"param:train.batch_size": "512"})
    assert found.text().splitlines() == [
        "                    old  new",
        "parameters",
        "  train.batch_size  256  512  Trainer",
    ]
    assert found.to_json()["parameters"] == [
        {"name": "train.batch_size", "old": 256, "new": 512, "nodes": ["Trainer"]}
    ]


def test_input_that_reads_something_else_is_reported():
    noted = {"input:schema": "SchemaGen.schema"}
    old = prints(Evaluator=noted)
    new = prints(Evaluator=noted, Trainer={"input:examples": "Transform.other"})
    told = [("parameters", "input examples", None, "Transform.other")]
    assert changes(compare(run(), run("new"), old, new)) == told


def test_inputs_are_not_compared_with_those_of_a_version_that_did_not_note_them():
    assert difference(Trainer={"input:examples": "Transform.graph"}).text() == "No difference."


def test_parameter_that_only_one_run_has_is_reported():
    assert changes(difference(Trainer={"param:train.seed": "42"})) == [
        ("parameters", "train.seed", None, "42")
    ]
    assert changes(difference(Trainer={"param:train.batch_size": None})) == [
        ("parameters", "train.batch_size", "256", None)
    ]


def test_file_that_several_nodes_read_is_reported_once_with_all_of_them():
    now = {"code:workloads/taxi/shared.py": "d" * 64}
    [change] = difference(Transform=now, Trainer=now).changes
    assert (change.section, change.name, change.nodes) == (
        "code",
        "workloads/taxi/shared.py",
        ("Transform", "Trainer"),
    )
    assert change.cells() == ("cccccccc", "dddddddd", "Transform, Trainer")


def test_same_parameter_of_two_nodes_with_other_values_is_reported_twice():
    found = difference(Transform={"param:exclude": "1"}, Trainer={"param:exclude": "2"})
    assert [(change.new, change.nodes) for change in found.changes] == [
        ("1", ("Transform",)),
        ("2", ("Trainer",)),
    ]


def test_version_of_the_stack_is_reported_once_for_all_nodes():
    [change] = difference(**{node: {"stack:tfx": "1.22.0"} for node in PARTS}).changes
    assert change.cells() == ("1.21.0", "1.22.0", "5 nodes")


def test_data_files_schema_and_baseline_have_their_own_sections():
    found = difference(
        Ingest={"data:trips-01.csv": None, "data:trips-02.csv": "e" * 64},
        SchemaGen={"code:schemas/taxi.pbtxt": "f" * 64},
        Evaluator={"external:latest blessed model": "9" * 64},
    )
    assert [(section, name) for section, name, _, _ in changes(found)] == [
        ("data", "trips-01.csv"),
        ("data", "trips-02.csv"),
        ("schema", "schemas/taxi.pbtxt"),
        ("baseline", "latest blessed model"),
    ]
    assert "  trips-02.csv          -         eeeeeeee  Ingest" in found.text().splitlines()


def test_data_to_compare_with_are_told_apart_behind_what_they_are():
    found = compare(
        run(),
        run("new"),
        prints(Evaluator={"external:data to compare with": f"blessed:{'a' * 64}"}),
        prints(Evaluator={"external:data to compare with": f"blessed:{'b' * 64}"}),
    )
    assert found.changes[0].cells()[:2] == ("blessed:aaaaaaaa", "blessed:bbbbbbbb")


def test_span_is_reported_as_one():
    names = [f"param:range_config.static_range.{end}_span_number" for end in ("start", "end")]
    found = compare(
        run(),
        run("new"),
        prints(Ingest=dict.fromkeys(names, "17")),
        prints(Ingest=dict.fromkeys(names, "18")),
    )
    assert changes(found) == [("parameters", "span", "17", "18")]


def test_change_that_is_only_passed_on_from_upstream_is_left_out():
    assert changes(difference(Transform={"upstream:Ingest": "other"})) == []


def test_metrics_are_reported_with_their_change():
    found = difference(
        run(metrics={"auc": 0.94, "loss": 1.0}), run("new", metrics={"auc": 0.95, "loss": 1.0})
    )
    assert found.to_json()["metrics"] == [
        {"name": "auc", "old": 0.94, "new": 0.95, "change": pytest.approx(0.01)}
    ]
    assert found.text().splitlines()[-1].split() == ["auc", "0.94", "0.95", "+0.01"]


def test_metric_that_one_run_lacks_has_no_change():
    found = difference(run(metrics={}), run("new", metrics={"auc": 0.95}))
    assert found.to_json()["metrics"] == [{"name": "auc", "old": None, "new": 0.95}]


def test_metric_that_is_no_number_in_both_is_no_difference():
    assert not difference(run(metrics={"auc": math.nan}), run("new", metrics={"auc": float("nan")})).changes


@pytest.mark.parametrize(
    ("was_s", "is_s", "is_told"),
    [
        (10.0, 12.0, False),
        (10.0, 12.1, True),
        (10.0, 7.9, True),
        (1.0, 1.5, False),
        (1.0, 1.6, True),
        (0.0, 0.6, True),
    ],
)
def test_durations_are_distinguished_from_a_fifth_and_half_a_second_on(was_s, is_s, is_told):
    old, new = run(), run("new")
    old.node("Trainer").wall_s, new.node("Trainer").wall_s = was_s, is_s
    assert bool(difference(old, new).changes) == is_told


def test_answer_from_the_cache_is_no_difference():
    new = run("new")
    for node in new.nodes:
        node.state, node.wall_s = "cached", 0.0
    assert difference(new=new).text() == "No difference."


def test_outcome_is_reported_first():
    old = run(blessed=True, pushed={"version": "17", "path": "/p"}, metrics={"auc": 0.9})
    new = run("new", blessed=False, metrics={"auc": 0.5})
    new.state = "stopped"
    new.node("Evaluator").state = "skipped"
    found = difference(old, new)
    assert changes(found)[:4] == [
        ("outcome", "state", "complete", "stopped"),
        ("outcome", "blessed", True, False),
        ("outcome", "pushed", "17", None),
        ("outcome", "Evaluator", "complete", "skipped"),
    ]
    assert [line.split() for line in found.text().splitlines()[2:5]] == [
        ["state", "complete", "stopped"],
        ["blessed", "yes", "no"],
        ["pushed", "17", "-"],
    ]


def test_node_that_only_one_run_has_is_reported_without_its_parts():
    new = run("new")
    new.nodes.append(NodeRecord("Tuner", type="Tuner", state="complete"))
    found = compare(run(), new, prints(), {**prints(), "Tuner": Fingerprint({"param:trials": "5"})})
    assert changes(found) == [("nodes", "Tuner", None, "Tuner")]


def test_node_of_another_component_is_reported_once():
    new = run("new")
    new.node("SchemaGen").type = "InferSchema"
    found = difference(new=new, SchemaGen={"param:component": '"InferSchema"'})
    assert changes(found) == [("nodes", "SchemaGen", "SchemaGen", "InferSchema")]


def test_options_of_the_command_are_reported():
    old = run(target=RecordedRequest(output=Path("/a")))
    new = run("new", target=RecordedRequest(output=Path("/b"), end="Trainer"))
    assert changes(difference(old, new)) == [("options", "end", None, '"Trainer"')]


def test_of_where_the_settings_came_from_the_profile_is_reported_and_nothing_twice():
    origin = Origin("workloads/taxi/workload.yaml")
    old = run(target=RecordedRequest(origin=origin))
    new = run(
        "new", target=RecordedRequest(origin=replace(origin, sets=("train.batch_size=1",), profile="dev"))
    )

    assert changes(difference(old, new)) == [("options", "profile", None, '"dev"')]


def test_settings_that_are_no_node_s_are_reported():
    """Such as a shorter time limit, for which the second run failed."""
    old, new = (
        run(each, target=RecordedRequest(workload="taxi", target=WorkloadRun(config=json.dumps(config))))
        for each, config in (
            ("old", {"nodes": {"Trainer": {"limit_s": 600}}, "train": {"batch_size": 1}}),
            ("new", {"nodes": {"Trainer": {"limit_s": 6}}, "train": {"batch_size": 2}}),
        )
    )
    assert changes(difference(old, new)) == [("options", "nodes.Trainer.limit_s", "600", "6")]


def test_long_values_are_cut_around_their_first_difference():
    old, new = (json.dumps([*range(100), end]) for end in ("before", "after"))
    found = compare(run(), run("new"), prints(Trainer={"param:p": old}), prints(Trainer={"param:p": new}))
    was, is_, _ = found.changes[0].cells()
    assert max(len(was), len(is_)) <= 40
    assert "before" in was
    assert "after" in is_


def test_many_changed_files_are_counted_beyond_the_first():
    found = difference(Ingest={f"data:part-{i:03}.csv": "0" * 64 for i in range(100)})
    assert found.text().splitlines()[-1] == "  and 80 more (--json has all)"
    assert len(found.to_json()["data"]) == 100


def test_control_characters_of_names_do_not_reach_the_terminal():
    assert "\x1b" not in difference(Ingest={"data:\x1b[31m.csv": "0" * 64}).text()


def test_run_without_fingerprints_says_what_is_not_compared():
    found = compare(run(), run("new"), prints(), None)
    assert found.text().splitlines() == [
        "No difference.",
        "Parameters, code and data are not compared: new ended before its plan.",
    ]


def test_kept_fingerprints_are_read_back(tmp_path):
    history = History(tmp_path)
    record = history.new_run("taxi")
    assert read_fingerprints(history.folder(record.run_id)) is None
    history.save_fingerprints(record.run_id, prints())
    assert read_fingerprints(history.folder(record.run_id)) == prints()


@pytest.mark.parametrize("content", ["", "[]", '{"Trainer": "{}"}', "\x00"])
def test_damaged_fingerprints_are_refused_by_name(tmp_path, content):
    (tmp_path / "fingerprints.json").write_text(content)
    with pytest.raises(PipelineError, match=r"fingerprints\.json cannot be read"):
        read_fingerprints(tmp_path)
