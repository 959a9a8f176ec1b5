"""The workload file's `preflight`: the time limit of a compilation, and the prices of a chip-hour."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from slipway.components.preflight.chip_specs import CHIPS
from slipway.pipeline.config.section import Month, OneOf, Section
from slipway.pipeline.config.settings_errors import KeyRuleError

Generation = Annotated[str, OneOf(CHIPS)]
ChipHour = Annotated[float, Field(gt=0)]


class PreflightConfig(Section):
    """Settings of the command `preflight` and of the node before the Trainer."""

    limit_s: float = Field(
        default=600.0, ge=1, description="Seconds that compiling the step for one slice may take."
    )
    prices: dict[Generation, ChipHour] = Field(
        default={},
        description="US dollars that you pay for a chip-hour, by generation; for others, the prices "
        "in docs/tpu.md are used.",
        examples=[{"v5e": 0.95}],
    )
    prices_of: Month | None = Field(
        default=None, description="The month of the prices; needed with prices.", examples=["2026-11"]
    )

    @model_validator(mode="after")
    def _prices_have_a_month(self) -> Self:
        if self.prices and self.prices_of is None:
            raise KeyRuleError("needs preflight.prices_of: their month, such as 2026-11", "prices")
        return self
