"""Settings for checkpoints: when to save, how many to keep, and which is the best."""

import math
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from slipway.components.errors import ComponentError
from slipway.components.metrics.definitions import METRICS, Metric
from slipway.components.setting_fields import setting
from slipway.components.trainer.settings.group import SettingsGroup

Goal = Literal["min", "max"]
_SHORT = {
    "acc": "accuracy",
    "bce": "binary_crossentropy",
    "mae": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "mse": "mean_squared_error",
    "msle": "mean_squared_logarithmic_error",
}
"""Keras' short names, which it then gives to the metrics."""
_NUMBER = re.compile(r"_\d+$")


def known_metric(metric: str) -> Metric | None:
    """Return what is known of a metric of a training; None: nothing.

    Args:
        metric: by Keras' name, such as val_loss or val_auc; val_OUTPUT_auc of one of several outputs, and
            val_auc_1 of the second such metric.
    """
    name = metric.removeprefix("val_")
    ends = (_SHORT.get(end, end) for end in (name, *_ends(name)))
    return next((METRICS[end] for end in ends if end in METRICS), None)


def _ends(name: str) -> list[str]:
    plain = _NUMBER.sub("", name)
    return [plain[place:] for place in range(len(plain)) if place == 0 or plain[place - 1] == "_"]


def goal_of(metric: str) -> Goal | None:
    """Return whether a lower or a higher metric of a training is better; None if it is not known.

    Args:
        metric: as for `known_metric`.
    """
    known = known_metric(metric)
    is_loss = known is None and _ends(metric.removeprefix("val_"))[-1:] == ["loss"]
    better = "lower" if is_loss else known.better if known else None
    goals: dict[str | None, Goal] = {"lower": "min", "higher": "max"}
    return goals.get(better)


def wrong_goal(metric: str, goal: Goal | None) -> str:
    """Return what a goal must be for a metric of a training; "" if it is, or nothing is known but the goal.

    Args:
        metric: see `goal_of`.
        goal: None: it was not given.
    """
    right = goal_of(metric)
    if right is None and goal is None:
        return f"must be max or min: nothing is known of {metric}; write max where a higher one is better"
    if right in (None, goal):
        return ""
    return f"must be {right}: of {metric} {'lower' if right == 'min' else 'higher'} is better"


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings(SettingsGroup):
    """When a training saves its state, in addition to the end of every epoch.

    A metric of the eval split begins with "val_"; a training without `best_metric` has no best epoch.
    """

    key: ClassVar[str] = "checkpoint"
    section: ClassVar[str] = "checkpoint"

    steps: int | None = setting(
        None, "Save a checkpoint after this many steps, in addition to each epoch's end; null: never.", ge=1
    )
    minutes: float | None = setting(
        10.0, "Save a checkpoint when the last one is this many minutes old; null: never.", gt=0
    )
    keep: int = setting(2, "How many of the newest checkpoints to keep.", ge=1)
    folder: str | None = setting(
        None,
        "Folder of the checkpoints, a path, gs://..., s3://... or az://...; null: the engine's own.",
        min_length=1,
    )
    best_metric: str = setting(
        "val_loss", "The metric that decides which epoch's checkpoint is kept as the best.", min_length=1
    )
    best_goal: Goal | None = setting(
        None, "Whether a lower or a higher best_metric is better; null: as is known of it, if it is."
    )
    serve_best: bool = setting(
        False, "Whether the best epoch's weights are exported instead of the last one's."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.best_goal is None:
            object.__setattr__(self, "best_goal", goal_of(self.best_metric))

    def is_better(self, value: float, best: float | None) -> bool:
        """Return True if a metric's value beats the best one so far; NaN and infinity never do.

        Raises:
            ComponentError: which side is better is neither given nor known.
        """
        if not math.isfinite(value):
            return False
        if self.best_goal is None:
            raise ComponentError(f"train.checkpoint.best_goal {wrong_goal(self.best_metric, None)}")
        if best is None:
            return True
        return value < best if self.best_goal == "min" else value > best
