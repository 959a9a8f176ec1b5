"""Confidence bounds of a slice's values, by formula and by the spread that was measured."""

import pytest

from slipway.components.model_gate.interval_formulas import Spread, auc_bounds, proportion_bounds
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.metric_bounds import bounds, difference_bounds, intervals
from slipway.components.model_gate.trivial_scores import LabelStatistics

LABELS = LabelStatistics.of_counts({0: 800, 1: 200})
SPREAD = Spread(0.1, 63)  # 1.669 of it either side, with 95 % confidence


def test_bounds_are_those_of_the_formula_for_the_rows_and_labels_of_the_slice():
    both = Measured({"example_count": 1000}, {}, LABELS)
    assert bounds("auc", 0.9, both, 0.95) == auc_bounds(0.9, 200, 800, confidence=0.95)
    assert bounds("accuracy", 0.9, both, 0.95) == proportion_bounds(0.9, 1000, confidence=0.95)
    # Metrics come as sums of 32-bit numbers, and a share may come out as a little more than all.
    assert bounds("accuracy", 1 + 1e-7, both, 0.95) == bounds("accuracy", 1.0, both, 0.95)
    assert bounds("accuracy", -1e-7, both, 0.95) == bounds("accuracy", 0.0, both, 0.95)
    assert bounds("accuracy", 1.0, Measured({"example_count": 1}, {}, None), 0.95)[0] < 1


def test_bounds_end_where_the_metric_ends():
    at, wide = Measured({}, {}, None), Spread(error=2.0, degrees_of_freedom=50.0)
    assert bounds("precision", 0.1, at, 0.95, wide) == (0.0, 1.0)
    assert bounds("cosine_similarity", 0.1, at, 0.95, wide) == (-1, 1)
    low, high = bounds("mean_squared_error", 0.1, at, 0.95, wide)
    assert (low, high > 3) == (0.0, True)
    assert bounds("poisson", 0.1, at, 0.95, wide)[0] < -3


@pytest.mark.parametrize(
    ("metric", "at"),
    [
        ("not_of_ours", Measured({"example_count": 1000}, {}, LABELS)),
        ("mean_absolute_error", Measured({"example_count": 1000}, {}, LABELS)),
        ("accuracy", Measured({}, {}, None)),
        ("auc", Measured({"example_count": 1000}, {}, None)),
        ("auc", Measured({}, {}, LabelStatistics.of_counts({0: 5, 1: 5, 2: 5}))),
    ],
)
def test_value_is_its_own_bound_where_no_formula_is_known(metric, at):
    assert bounds(metric, 0.9, at, 0.95) == (0.9, 0.9)


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        ("mean_absolute_error", 0.9, (0.7331, 1.0669)),
        ("precision", 0.9, (0.7331, 1.0)),
        ("precision", 1 + 1e-7, (0.8331, 1 + 1e-7)),
        ("not_of_ours", 0.9, (0.7331, 1.0669)),
        ("accuracy", 0.9, proportion_bounds(0.9, 1000, confidence=0.95)),
        ("auc", 0.9, auc_bounds(0.9, 200, 800, confidence=0.95)),
    ],
)
def test_bounds_without_a_formula_are_those_of_the_measured_spread(metric, value, expected):
    at = Measured({"example_count": 1000}, {}, LABELS)
    assert bounds(metric, value, at, 0.95, SPREAD) == pytest.approx(expected, abs=1e-4)


def test_area_of_several_classes_is_bounded_by_its_spread():
    three = Measured({}, {}, LabelStatistics.of_counts({0: 5, 1: 5, 2: 5}))
    assert bounds("auc", 0.7, three, 0.95, SPREAD) == pytest.approx((0.5331, 0.8669), abs=1e-4)


def test_bounds_of_a_mean_over_labels_are_those_of_its_spread():
    labels = {"sport": LABELS, "music": LABELS}
    metrics = {"binary_accuracy": 0.9, "sport/binary_accuracy": 0.9, "example_count": 1000.0}
    spread = Spread(0.001, 63)
    at = Measured(metrics, {}, None, spreads={"binary_accuracy": spread}, labels_of_outputs=labels)
    low, high = bounds("binary_accuracy", 0.9, at, 0.95, spread)
    assert high - low == pytest.approx(2 * spread.half(0.95))
    of_one = at.of_output("sport")
    assert bounds("sport/binary_accuracy", 0.9, of_one, 0.95) == proportion_bounds(0.9, 1000, confidence=0.95)


def test_weights_that_differ_tell_less_than_the_rows_that_there_are():
    few = LabelStatistics.of_counts({0: 800, 1: 200}, squares={0: 3200, 1: 800})
    assert (few.rows, few.mean, few.majority_share) == (250.0, 0.2, 0.8)
    metrics = {"binary_accuracy": 0.9, "example_count": 1000.0}
    low, sure = (
        bounds("binary_accuracy", 0.9, Measured(metrics, {}, each), 0.95)[0] for each in (few, LABELS)
    )
    assert low == pytest.approx(proportion_bounds(0.9, 250, confidence=0.95)[0])
    assert low < sure


def test_of_few_rows_a_difference_lies_in_the_wider_bounds_on_either_side():
    metrics = {"example_count": 100.0, "binary_accuracy": 0.7}
    labels = LabelStatistics.of_counts({0: 60, 1: 40})

    def found(spread):
        spreads = {"binary_accuracy": spread} if spread else {}
        at = Measured(metrics, {"binary_accuracy": 0.95}, labels, difference_spreads=spreads)
        return difference_bounds("binary_accuracy", at, 0.95)

    on_different_rows = found(None)
    assert on_different_rows[0] < -0.25 < on_different_rows[1]
    assert found(Spread(0.001, 5)) == on_different_rows
    half = Spread(1.0, 5).half(0.95)
    assert found(Spread(1.0, 5)) == (pytest.approx(-0.25 - half), pytest.approx(-0.25 + half))


def test_every_value_with_a_formula_or_a_spread_has_an_interval():
    spreads = {"mean_absolute_error": Spread(0.5, 63), "tip/auc": Spread(9.0, 1)}
    labels = LabelStatistics.of_counts({0: 600, 1: 400})
    metrics = {"auc": 0.8, "tip/auc": 0.8, "mean_absolute_error": 2.0, "mine": 3.0, "example_count": 1000.0}
    at = Measured(metrics, {}, labels, spreads=spreads, labels_of_outputs={"tip": labels})
    of_areas = auc_bounds(0.8, 400, 600, confidence=0.975)
    assert intervals(at) == {
        "auc": of_areas,
        "tip/auc": of_areas,
        "mean_absolute_error": (pytest.approx(1.0008, abs=1e-4), pytest.approx(2.9992, abs=1e-4)),
    }
    of_one_class = Measured(metrics, {}, LabelStatistics.of_counts({0: 1000}))
    assert intervals(of_one_class) == {}, "an area over labels of one class means nothing"
