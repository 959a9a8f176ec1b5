"""What a training does when its loss is no longer a number, or far too high."""

from dataclasses import dataclass
from typing import ClassVar

from components.errors import ComponentError
from components.trainer.settings.group import SettingsGroup


@dataclass(frozen=True, kw_only=True)
class BlowUpSettings(SettingsGroup):
    """The workload's `train.blow_up`.

    Source of the rule: TensorFlow Model Garden's `TrainerConfig`, `loss_upper_bound` and
    `recovery_max_trials`.

    Attributes:
        loss_limit: the mean loss of an epoch so far must not exceed it; None: it need only be finite.
        trials: how often the training goes back to its newest checkpoint, and on from there with the
            examples in another order, before it stops; >= 0.
    """

    key: ClassVar[str] = "blow_up"
    section: ClassVar[str] = "blow_up"

    loss_limit: float | None = None
    trials: int = 0

    def __post_init__(self) -> None:
        self.require_integer("trials", 0)
        if self.loss_limit is not None and not isinstance(self.loss_limit, int | float):
            raise ComponentError(f"train.blow_up.loss_limit ({self.loss_limit!r}) must be a number")
