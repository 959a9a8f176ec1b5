"""Quantiles that cross are told."""

import pytest

from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.quantile_rules import quantile_checks
from slipway.components.model_gate.verdict import Check


@pytest.mark.parametrize("name", ["quantile_crossing", "cost/quantile_crossing"])
def test_crossing_is_reported_and_stops_nothing(name):
    assert quantile_checks(["pinball_loss", name], Measured({name: 0.02, "pinball_loss": 3.0}, {}, None)) == [
        Check(
            metric=name,
            slice="overall",
            required="0: no lower quantile above a higher one",
            got=0.02,
            baseline=None,
            passed=False,
            stops=False,
            note="slipway.components.trainer.models.quantiles.rising makes answers that cannot cross",
        )
    ]
    assert quantile_checks([name], Measured({name: 0.0}, {}, None)) == []
    assert quantile_checks([name], Measured({}, {}, None)) == []
