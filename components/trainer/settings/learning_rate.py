"""Settings for the learning rate."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from slipway.components.setting_fields import setting
from slipway.components.trainer.settings.group import SettingsGroup

Scale = Literal["none", "linear", "sqrt"]


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

    def factor(self, batch_size: int) -> float:
        """Return the factor for the model's learning rate.

        Sources: "linear" Goyal et al. 2017, arXiv:1706.02677; "sqrt", which suits Adam, Krizhevsky 2014,
        arXiv:1404.5997.

        Args:
            batch_size: examples per update of the weights.
        """
        quotient = batch_size / self.base_batch_size
        return {"none": 1.0, "linear": quotient, "sqrt": math.sqrt(quotient)}[self.scale]
