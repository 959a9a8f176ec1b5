"""In which order the screen and a run's page list checks and slices."""

import math

import pytest

from slipway.pipeline.runs.verdict_order import SEVERITIES, severity, worst_first


@pytest.mark.parametrize(
    ("check", "word"),
    [
        ({"passed": True, "stops": True}, "passed"),
        ({"passed": False}, "FAILED"),
        ({"passed": False, "stops": True}, "FAILED"),
        ({"passed": False, "stops": False}, "warning"),
    ],
)
def test_check_that_stops_the_run_is_severer_than_one_that_warns(check, word):
    assert SEVERITIES[severity(check)] == word
    assert list(SEVERITIES) == ["FAILED", "warning", "passed"], "the severest first"


@pytest.mark.parametrize(
    ("metric", "order"),
    [
        ("auc", ["b", "a"]),
        ("tip/auc", ["b", "a"]),
        ("mean_absolute_error", ["a", "b"]),
        ("of_ones_own", ["b", "a"]),
        ("refund_loss", ["a", "b"]),  # of one's own, too
    ],
)
def test_worst_slice_is_first_whichever_side_is_better(metric, order):
    slices = {"a": {metric: 0.9, "example_count": 10.0}, "b": {metric: 0.5, "example_count": 10.0}}
    assert worst_first(slices, metric, min_rows=10) == (order, frozenset())


@pytest.mark.parametrize(
    ("metric", "required", "order"),
    [
        ("cost", "at most 3", ["a", "b"]),
        ("cost", "at most 0.7 (baseline 0.6 plus 0.1)", ["a", "b"]),
        ("cost", "at least 3", ["b", "a"]),
        ("refund_loss", "at least 3", ["b", "a"]),
        ("auc", "at most 3", ["b", "a"]),
    ],
)
def test_limits_of_a_metric_of_one_s_own_say_which_slice_is_worst(metric, required, order):
    slices = {"a": {metric: 0.9}, "b": {metric: 0.5}}
    checks = [{"metric": "other", "required": "at least 1"}, {"metric": metric, "required": required}]
    assert worst_first(slices, metric, min_rows=0, checks=checks)[0] == order


def test_slices_without_a_value_come_after_those_with_one_and_small_ones_last():
    slices = {
        "small": {"auc": 0.1, "example_count": 9.0},
        "none": {"example_count": 10.0},
        "nan": {"auc": math.nan, "example_count": 10.0},
        "good": {"auc": 0.9, "example_count": 10.0},
        "uncounted": {"auc": 0.5},
    }
    ordered, small = worst_first(slices, "auc", min_rows=10)
    assert ordered == ["uncounted", "good", "none", "nan", "small"]
    assert small == {"small"}
