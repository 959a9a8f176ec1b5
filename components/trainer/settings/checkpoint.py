"""When a training keeps its state, how many states stay, and which is the best."""

from dataclasses import dataclass
from typing import ClassVar

from components.errors import ComponentError
from components.trainer.settings.group import SettingsGroup

GOALS = ("min", "max")


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings(SettingsGroup):
    """The workload's `train.checkpoint`.

    Attributes:
        steps: a checkpoint after every so many steps, >= 1; None: at the end of an epoch only.
        minutes: a checkpoint when the last one is so old, > 0; None: at the end of an epoch only.
        keep: how many of the newest stay, >= 1.
        folder: where they lie, a path or gs://...; a subfolder a training. None: where the engine keeps them.
        best_metric: the checkpoint of the epoch with the best one stays too; a metric of the eval split
            begins with "val_". A training without that metric has no best.
        best_goal: "min" or "max".
        serve_best: whether the best epoch's weights are exported instead of the last one's.
    """

    key: ClassVar[str] = "checkpoint"
    section: ClassVar[str] = "checkpoint"

    steps: int | None = None
    minutes: float | None = 10.0
    keep: int = 2
    folder: str | None = None
    best_metric: str = "val_loss"
    best_goal: str = "min"
    serve_best: bool = False

    def __post_init__(self) -> None:
        if self.steps is not None:
            self.require_integer("steps", 1)
        self.require_integer("keep", 1)
        self.require_choice("best_goal", GOALS)
        if self.minutes is not None and not self.minutes > 0:
            raise ComponentError(f"train.checkpoint.minutes ({self.minutes!r}) must be above 0")

    def is_better(self, value: float, best: float | None) -> bool:
        """Whether a metric's value beats the best one so far; not a number never does."""
        if value != value:
            return False
        if best is None:
            return True
        return value < best if self.best_goal == "min" else value > best
