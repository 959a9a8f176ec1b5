"""Settings for what is recorded while a training runs."""

import re
from dataclasses import dataclass
from typing import ClassVar

from slipway.components.errors import ComponentError
from slipway.components.setting_fields import setting
from slipway.components.trainer.settings.group import SettingsGroup

STEP_RANGE = r"^[0-9]+:[0-9]+$"
"""The form of FIRST:LAST; JSON Schema cannot express more."""


def step_range(text: str) -> tuple[int, int] | None:
    """Return the first and the last step of FIRST:LAST, both counted from 1; None: not such a range."""
    if re.fullmatch(STEP_RANGE, text) is None:
        return None
    first, last = map(int, text.split(":"))
    return (first, last) if 1 <= first <= last else None


@dataclass(frozen=True, kw_only=True)
class WatchSettings(SettingsGroup):
    """Keys of the workload's `train` that say what is recorded."""

    key: ClassVar[str] = "watch"

    tensorboard: bool = setting(True, "Whether to write scalars for TensorBoard, every 100 steps.")
    profile_steps: str | None = setting(
        None,
        "FIRST:LAST, the steps to profile for TensorBoard, counted from 1; null: none.",
        examples=["10:20"],
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.profiled

    @property
    def profiled(self) -> tuple[int, int] | None:
        """The first and the last step to profile, counted from 1; None: none.

        Raises:
            ComponentError: `profile_steps` is not such a range.
        """
        if self.profile_steps is None:
            return None
        if found := step_range(self.profile_steps):
            return found
        raise ComponentError(
            f"train.profile_steps ({self.profile_steps!r}) must be FIRST:LAST, both counted from 1",
            hint="for instance --set train.profile_steps=10:20",
        )
