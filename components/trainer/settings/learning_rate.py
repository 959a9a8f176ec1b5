"""Settings for the learning rate."""

from dataclasses import dataclass
from typing import ClassVar

from slipway.components.setting_fields import setting
from slipway.components.trainer.global_batch import Scale
from slipway.components.trainer.settings.group import SettingsGroup


@dataclass(frozen=True, kw_only=True)
class LearningRateSettings(SettingsGroup):
    """How the model's learning rate follows the global batch."""

    key: ClassVar[str] = "learning_rate"
    section: ClassVar[str] = "learning_rate"

    scale: Scale = setting(
        "none",
        "Whether the rate is multiplied by batch_size x accumulate_steps / base_batch_size, by its square "
        "root, or not.",
    )
    base_batch_size: int = setting(
        256, "The batch size that the model's own learning rate was chosen for.", ge=1
    )
    warmup_steps: int = setting(0, "Updates over which the learning rate rises from 0 to its value.", ge=0)
