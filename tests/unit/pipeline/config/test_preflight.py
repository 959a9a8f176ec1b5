"""The workload file's `preflight`."""

import pytest
from pydantic import ValidationError

from slipway.components.preflight.chip_specs import CHIPS
from slipway.pipeline.config.json_schema import workload_schema
from slipway.pipeline.config.preflight import PreflightConfig


def test_prices_may_be_given_for_the_generations_that_are_known():
    prices = dict.fromkeys(CHIPS, 1.0)
    assert PreflightConfig(prices=prices, prices_of="2026-11").prices == prices
    shown = workload_schema()["$defs"]["PreflightConfig"]["properties"]["prices"]
    assert shown["propertyNames"] == {"enum": list(CHIPS)}


def test_prices_need_the_month_that_they_are_of():
    assert PreflightConfig(prices={"v5e": 0.95}, prices_of="2026-11").prices == {"v5e": 0.95}
    with pytest.raises(ValidationError, match=r"needs preflight\.prices_of"):
        PreflightConfig(prices={"v5e": 0.95})


@pytest.mark.parametrize(
    "keys",
    [
        {"prices": {"v5e": 0.0}, "prices_of": "2026-11"},
        {"prices": {"v9": 1.0}, "prices_of": "2026-11"},
        {"prices_of": "2026-13"},
        {"limit_s": 0.0},
    ],
)
def test_what_no_price_month_or_limit_is_is_refused(keys):
    with pytest.raises(ValidationError):
        PreflightConfig(**keys)
