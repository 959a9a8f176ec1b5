"""The workload file's `evaluate`: how a trained model is judged."""

from typing import Self

from pydantic import Field, model_validator

from pipeline.config.problems import KeyRuleError
from pipeline.config.section import Metrics, Section, Slices, SnakeName


class Threshold(Section):
    """Bounds of one metric; a model outside them is not blessed."""

    min: float | None = Field(default=None, description="The lowest value that is blessed.")
    max: float | None = Field(default=None, description="The highest value that is blessed.")
    max_drop: float | None = Field(
        default=None, ge=0, description="How far below the last blessed model's value it may lie."
    )

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise KeyRuleError(f"min ({self.min}) is above max ({self.max}); no value can pass")
        if self.min is None and self.max is None and self.max_drop is None:
            raise KeyRuleError("holds no bound; give min, max or max_drop")
        return self


class EvaluateConfig(Section):
    """How the trained model is judged on the eval split."""

    metrics: Metrics = Field(
        default=("auc", "binary_accuracy"), description="Keras metrics to compute, by their snake_case names."
    )
    slices: Slices = Field(
        default=(),
        description="Lists of raw columns; the metrics are also computed for each of their values.",
    )
    thresholds: dict[SnakeName, Threshold] = Field(
        default={}, description="Bounds per metric that the model must keep to be blessed and pushed."
    )

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        for key, items in (("metrics", self.metrics), ("slices", self.slices)):
            for index, item in enumerate(items):
                if item in items[:index]:
                    raise KeyRuleError("given twice; keep one", key, index)
        for metric in self.thresholds:
            if metric not in self.metrics:
                listed = ", ".join(self.metrics)
                raise KeyRuleError(
                    f"not one of evaluate.metrics ({listed}); add it there", "thresholds", metric
                )
        return self
