"""Settings for stopping a training before its last epoch."""

from dataclasses import dataclass
from typing import ClassVar

from slipway.components.setting_fields import setting
from slipway.components.trainer.settings.group import SettingsGroup


@dataclass(frozen=True, kw_only=True)
class EarlyStoppingSettings(SettingsGroup):
    """Settings for stopping a training before its last epoch."""

    key: ClassVar[str] = "early_stopping"
    section: ClassVar[str] = "early_stopping"

    patience: int | None = setting(
        None,
        "Epochs without a better checkpoint.best_metric after which training stops and the best epoch's "
        "weights are exported; null: never stop early.",
        ge=1,
    )
    share: float = setting(
        0.1,
        "Share of the train split that is held out to measure it; the eval split is not used for this.",
        gt=0,
        lt=1,
    )
