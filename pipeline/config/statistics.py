"""The workload file's `statistics`: the statistics of the raw examples, and the share of rows to use."""

from typing import Self

from pydantic import Field, model_validator

from slipway.pipeline.config.section import Column, Section, Slices
from slipway.pipeline.config.settings_errors import KeyRuleError


class StatisticsConfig(Section):
    """What StatisticsGen computes; the gates, the schema and the report read its result."""

    slices: Slices = Field(
        default=(),
        description="Lists of raw columns; the statistics are also computed for each of their values, for "
        "TFDV's own tools. The data gate uses those of all rows.",
    )
    weight: Column | None = Field(
        default=None,
        description="Raw column with each row's weight, a number: weighted statistics are computed in "
        "addition. null: none.",
    )
    sample_rate: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of the rows to compute the statistics from; null: all. Row counts in "
        "findings about a column, and in the report, are then those of the sample.",
    )

    @model_validator(mode="after")
    def _slices_differ(self) -> Self:
        for index, item in enumerate(self.slices):
            if set(item) in map(set, self.slices[:index]):
                raise KeyRuleError("given twice; keep one", "slices", index)
            if len(set(item)) < len(item):
                raise KeyRuleError("names a column twice", "slices", index)
        return self
