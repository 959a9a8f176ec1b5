"""Settings for what is recorded while a training runs."""

import re
from dataclasses import dataclass
from typing import ClassVar

from slipway.components.errors import ComponentError
from slipway.components.settings import setting
from slipway.components.trainer.settings.group import SettingsGroup

_STEPS = re.compile(r"(\d+):(\d+)")


@dataclass(frozen=True, kw_only=True)
class WatchSettings(SettingsGroup):
    """Keys of the workload's `train` that say what is recorded."""

    key: ClassVar[str] = "watch"

    tensorboard: bool = setting(True, "Whether scalars for TensorBoard are written, every 100 steps.")
    profile_steps: str | None = setting(
        None,
        "FIRST:LAST, steps counted from 1 that are profiled for TensorBoard; null: none.",
        examples=["10:20"],
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.profiled

    @property
    def profiled(self) -> tuple[int, int] | None:
        """The first and the last step that are profiled, counted from 1; None: none.

        Raises:
            ComponentError: `profile_steps` is no such range.
        """
        if self.profile_steps is None:
            return None
        match = _STEPS.fullmatch(self.profile_steps)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ComponentError(
                f"train.profile_steps ({self.profile_steps!r}) must be FIRST:LAST, both counted from 1",
                hint="for instance --set train.profile_steps=10:20",
            )
        return int(match[1]), int(match[2])
