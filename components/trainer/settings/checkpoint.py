"""Settings for checkpoints: when to save, how many to keep, and which is the best."""

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from slipway.components.metrics.definitions import METRICS
from slipway.components.setting_fields import setting
from slipway.components.trainer.settings.group import SettingsGroup

Goal = Literal["min", "max"]
_SHORT = {"acc": "accuracy"}
_NUMBER = re.compile(r"_\d+$")


def wrong_goal(metric: str, goal: Goal) -> str:
    """Return what a goal must be for a metric of a training; empty if it is, or nothing is known of it.

    Args:
        metric: by Keras' name, such as val_loss or val_auc; val_OUTPUT_auc of one of several outputs, and
            val_auc_1 of the second such metric.
    """
    name = metric.removeprefix("val_")
    plain = _NUMBER.sub("", name)
    ends = [plain[place:] for place in range(len(plain)) if place == 0 or plain[place - 1] == "_"]
    known = next((METRICS[each] for end in (name, *ends) if (each := _SHORT.get(end, end)) in METRICS), None)
    is_loss = known is None and ends[-1] == "loss"
    better = "lower" if is_loss else known.better if known else None
    right = {"lower": "min", "higher": "max"}.get(better or "", goal)
    return "" if right == goal else f"must be {right}: of {metric} {better} is better"


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
    best_goal: Goal = setting("min", "Whether a lower or a higher best_metric is better.")
    serve_best: bool = setting(
        False, "Whether the best epoch's weights are exported instead of the last one's."
    )

    def is_better(self, value: float, best: float | None) -> bool:
        """Return True if a metric's value beats the best one so far; NaN never does."""
        if value != value:
            return False
        if best is None:
            return True
        return value < best if self.best_goal == "min" else value > best
