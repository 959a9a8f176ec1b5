"""Where and with what a training computes: device, backend."""

from dataclasses import dataclass
from typing import ClassVar

from components.trainer.settings.group import SettingsGroup

BACKENDS = ("tensorflow", "jax", "torch")


@dataclass(frozen=True, kw_only=True)
class ComputeSettings(SettingsGroup):
    """Keys of the workload's `train` that say what computes.

    Attributes:
        backend: of Keras.
    """

    key: ClassVar[str] = "compute"

    backend: str = "tensorflow"

    def __post_init__(self) -> None:
        self.require_choice("backend", BACKENDS)
