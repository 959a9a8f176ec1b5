"""When a training stops before its last epoch."""

from dataclasses import dataclass
from typing import ClassVar

from components.errors import ComponentError
from components.trainer.settings.group import SettingsGroup


@dataclass(frozen=True, kw_only=True)
class EarlyStoppingSettings(SettingsGroup):
    """The workload's `train.early_stopping`.

    Attributes:
        patience: epochs without a better `checkpoint.best_metric`, >= 1, after which the training stops;
            None: it goes on to its last epoch.
        share: of the train split's rows that are not trained on, above 0 and below 1: what begins with "val_"
            is measured on these, not on the eval split.
    """

    key: ClassVar[str] = "early_stopping"
    section: ClassVar[str] = "early_stopping"

    patience: int | None = None
    share: float = 0.1

    def __post_init__(self) -> None:
        if self.patience is not None:
            self.require_integer("patience", 1)
        if not isinstance(self.share, int | float) or not 0 < self.share < 1:
            raise ComponentError(f"train.early_stopping.share ({self.share!r}) must be above 0 and below 1")
