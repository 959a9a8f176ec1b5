"""Quantiles that cross are told."""

import pytest

from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.quantile_rules import quantile_checks


@pytest.mark.parametrize("name", ["quantile_crossing", "cost/quantile_crossing"])
def test_crossing_is_reported_and_stops_nothing(name):
    [check] = quantile_checks(["pinball_loss", name], Measured({name: 0.02}, {}, None))
    assert (check.metric, check.got, check.passed, check.stops) == (name, 0.02, False, False)
    assert quantile_checks([name], Measured({name: 0.0}, {}, None)) == []
    assert quantile_checks([name], Measured({}, {}, None)) == []
