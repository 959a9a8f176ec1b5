import json

import pytest

from slipway.pipeline.report.model import model, serving, slices, without_bounds
from slipway.pipeline.runs.record import NodeRecord, RunRecord


def test_the_worst_slice_comes_first_by_the_metric_that_was_checked():
    found = {
        "overall": {"auc": 0.9},
        "a=1": {"auc": 0.8, "other": 1.0},
        "a=2": {"auc": 0.5, "example_count": 7},
        "a=3": {"example_count": 0},
    }

    table = slices(found, ["auc", "serving: load"])

    assert table.metrics == ("auc",)
    assert table.rows == (("a=2", 7, (0.5,)), ("a=1", None, (0.8,)), ("a=3", 0, (None,)))


def test_of_a_loss_the_highest_is_the_worst():
    found = {"a=1": {"binary_crossentropy": 0.1}, "a=2": {"binary_crossentropy": 0.9}}

    assert [row[0] for row in slices(found, ["binary_crossentropy"]).rows] == ["a=2", "a=1"]


def test_slices_that_are_too_small_to_be_judged_come_last_and_are_named():
    found = {
        "a=1": {"auc": 0.1, "example_count": 7},
        "a=2": {"auc": 0.9, "example_count": 100},
        "a=3": {"auc": 0.0, "example_count": 99},
    }

    table = slices(found, ["auc"], min_rows=100)

    assert [row[0] for row in table.rows] == ["a=2", "a=3", "a=1"]
    assert (table.min_rows, table.small) == (100, {"a=1", "a=3"})


def test_a_value_has_its_bounds_beside_it_where_they_are_known():
    found = {"a=1": {"auc": 0.8, "f1_score": 0.5}, "a=2": {"auc": 0.9}}
    intervals = {"a=1": {"auc": [0.75, 0.84321]}}

    worth = {"a=1": 7.4, "overall": 3.0, "one that is not shown": 2.0}
    table = slices(found, ["auc", "f1_score"], intervals=intervals, worth=worth)

    assert table.intervals == {"a=1": ("[0.75, 0.8432]", ""), "a=2": ("", "")}
    assert table.worth == {"a=1": 7.4}


def test_metrics_whose_bounds_are_not_known_are_named():
    found = {"overall": {"example_count": 9.0, "auc": 0.9, "gain": 2.0}, "a=1": {"more": 1.0}}
    assert without_bounds(found, {"overall": {"auc": (0.8, 0.95)}}) == ("gain",)
    assert without_bounds(found, {"overall": {}}) == ()


def test_one_slice_alone_needs_no_table():
    assert slices({"overall": {"auc": 0.9}}, ["auc"]) is None


def test_many_slices_are_cut_and_counted():
    found = {f"a={n}": {"auc": n / 1000} for n in range(1000)}

    table = slices(found, ["auc"])

    assert (table.rows[0][0], len(table.rows), table.left_out) == ("a=0", 300, 700)


def test_answers_that_are_infinitely_far_apart_are_told():
    rows = serving({"parity": {"largest": "inf"}, "raw": {"largest": 0.001234}})

    assert rows == (
        ("largest difference from training", "inf"),
        ("largest difference of raw columns", "0.00123"),
    )


def test_a_serving_check_that_crashed_says_so_first():
    assert serving({"crash": "no op X", "load_s": None}) == (("crash", "no op X"),)


@pytest.mark.parametrize(("worth", "is_weighted"), [({"overall": 3.0}, True), ({"a=1": 3.0}, False)])
def test_predictions_are_told_apart_from_weighted_metrics(tmp_path, worth, is_weighted):
    counts = {"kind": "binary", "groups": [[0.2, 1, 0.0, 0.0, 0.2]], "rows": 1, "not_finite": 0}
    verdict = {"answers": {"candidate": counts}, "telling_rows": worth}
    (tmp_path / "verdict.json").write_text(json.dumps(verdict))
    blessing = {"uri": str(tmp_path), "type": "ModelBlessing", "properties": {}}
    gate = NodeRecord("ModelGate", state="complete", outputs={"blessing": [blessing]})

    found = model(RunRecord("r", "taxi", nodes=[gate], blessed=True))
    assert found.predictions.has_weights == is_weighted
