"""Settings for keeping the parsed examples during a training."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from slipway.components.settings import setting
from slipway.components.trainer.settings.group import SettingsGroup


@dataclass(frozen=True, kw_only=True)
class InputSettings(SettingsGroup):
    """Settings for keeping the parsed examples during a training."""

    key: ClassVar[str] = "input"
    section: ClassVar[str] = "input"

    cache: Literal["auto", "memory", "file", "none"] = setting(
        "auto",
        "file: parsed once into a mapped file; none: read again in every epoch; auto: in memory if they "
        "fit, else none.",
    )
    shuffle_rows: int = setting(
        65536,
        "Size of the shuffle buffer in examples without a cache; with a cache, all examples are shuffled.",
        ge=1,
    )
