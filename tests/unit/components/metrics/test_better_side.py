"""Tests of which side of a metric is better."""

import pytest

from slipway.components.metrics.better_side import is_lower_better
from slipway.components.metrics.definitions import METRICS, of_output


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_of_an_output_is_better_where_the_plain_one_is(metric):
    expected = METRICS[metric].better == "lower"
    assert (is_lower_better(metric), is_lower_better(of_output("sold", metric))) == (expected, expected)


@pytest.mark.parametrize(
    ("metric", "bounds", "expected"),
    [
        ("waste", ["max"], True),
        ("waste", ["max_rise", "max"], True),
        ("cost_error", ["min"], False),
        ("cost_error", ["max_drop"], False),
        ("cost_error", ["min", "max"], True),  # of both sides: its name decides
        ("waste", ["min", "max"], False),
        ("waste", [], False),
        ("auc", ["max"], False),  # a known metric needs no bounds
    ],
)
def test_the_bounds_of_one_side_decide_for_a_metric_of_one_s_own(metric, bounds, expected):
    assert is_lower_better(metric, bounds) == expected
