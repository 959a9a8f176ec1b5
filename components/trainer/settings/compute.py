"""Where and with what a training computes."""

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from components.errors import ComponentError
from components.trainer.settings.group import SettingsGroup

DEVICES = ("auto", "cpu", "gpu", "tpu")
BACKENDS = ("tensorflow", "jax", "torch")
AXES = (None, "batch", "model")


@dataclass(frozen=True, kw_only=True)
class ComputeSettings(SettingsGroup):
    """Keys of the workload's `train` that say what computes.

    Attributes:
        device: "auto" takes a TPU, else a GPU, else the CPU; another one is taken or the training fails.
        backend: of Keras.
        tpu_address: name or address of the TPU, "local" for one in this machine; "": as the environment says.
        cpu_devices: how many devices the CPU is cut into, to rehearse on; >= 1.
        model_parallel: how many devices hold one copy of the model together; >= 1, more with JAX only.
        layout: pattern of a whole variable path to the axis that each of its dimensions is divided along:
            None, "batch" or "model".

    Raises:
        ComponentError: a value breaks one of these rules.
    """

    key: ClassVar[str] = "compute"

    device: str = "auto"
    backend: str = "tensorflow"
    tpu_address: str = ""
    cpu_devices: int = 1
    model_parallel: int = 1
    layout: dict[str, tuple[str | None, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.require_choice("device", DEVICES)
        self.require_choice("backend", BACKENDS)
        self.require_integer("cpu_devices", 1)
        self.require_integer("model_parallel", 1)
        if not isinstance(self.layout, dict):
            raise ComponentError(f"train.layout must map patterns to axes, not {self.layout!r}")
        # From JSON the axes come as lists; frozen as they are, that is the one way in.
        layout = {pattern: _axes(pattern, axes) for pattern, axes in self.layout.items()}
        object.__setattr__(self, "layout", layout)
        if self.model_parallel > 1 and not any("model" in axes for axes in layout.values()):
            raise ComponentError(
                f"train.model_parallel is {self.model_parallel}, but train.layout divides no variable along "
                "'model'",
                hint="for instance train.layout: {'.*dense.*kernel': [null, model]}",
            )


def _axes(pattern: str, axes: Any) -> tuple[str | None, ...]:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ComponentError(f"train.layout: {pattern!r} is not a regular expression: {error}") from error
    if not isinstance(axes, list | tuple) or any(axis not in AXES for axis in axes):
        raise ComponentError(
            f"train.layout: {pattern!r} must list null, batch or model for each dimension, not {axes!r}"
        )
    return tuple(axes)
