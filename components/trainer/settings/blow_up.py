"""Settings for a training whose loss becomes NaN or far too high."""

from dataclasses import dataclass
from typing import ClassVar

from slipway.components.setting_fields import setting
from slipway.components.trainer.settings.group import SettingsGroup


@dataclass(frozen=True, kw_only=True)
class BlowUpSettings(SettingsGroup):
    """The reaction to a loss that is NaN or too high.

    Source of the rule: TensorFlow Model Garden's `TrainerConfig`, `loss_upper_bound` and
    `recovery_max_trials`. Each trial takes the examples in another order.
    """

    key: ClassVar[str] = "blow_up"
    section: ClassVar[str] = "blow_up"

    loss_limit: float | None = setting(
        None, "The highest mean loss of an epoch; null: it only has to be finite."
    )
    trials: int = setting(
        0, "How many times training returns to its newest checkpoint before it stops.", ge=0
    )
