"""Settings for the devices and the backend of a training."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from slipway.components.errors import ComponentError
from slipway.components.setting_fields import setting
from slipway.components.trainer.settings.group import SettingsGroup

Device = Literal["auto", "cpu", "gpu", "tpu"]
Backend = Literal["tensorflow", "jax", "torch"]
Axis = Literal["batch", "model"]


@dataclass(frozen=True, kw_only=True)
class ComputeSettings(SettingsGroup):
    """Keys of the workload's `train` that choose devices and backend.

    Raises:
        ComponentError: a value breaks one of these rules.
    """

    key: ClassVar[str] = "compute"

    device: Device = setting(
        "auto", "What to train on; auto: a TPU if there is one, else a GPU, else the CPU."
    )
    backend: Backend = setting("tensorflow", "Keras' backend for training; serving uses TensorFlow.")
    tpu_address: str = setting(
        "", "Name or grpc:// address of the TPU, or local; empty: from the environment."
    )
    cpu_devices: int = setting(
        1, "Number of virtual CPU devices, to rehearse a training on several devices.", ge=1
    )
    model_parallel: int = setting(1, "Number of devices that share one copy of the model (jax only).", ge=1)
    layout: dict[str, tuple[Axis | None, ...]] = setting(
        {},
        "Maps a pattern for the whole path of a variable to the axis that splits each dimension: null, "
        "batch or model.",
        examples=[{".*dense.*kernel": [None, "model"]}],
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.layout, dict):
            raise ComponentError(f"train.layout must map patterns to axes, not {self.layout!r}")
        # JSON gives the axes as lists; in a frozen class this is the only way to replace them.
        layout = {pattern: _axes(pattern, axes) for pattern, axes in self.layout.items()}
        object.__setattr__(self, "layout", layout)
        if self.model_parallel > 1 and not any("model" in axes for axes in layout.values()):
            raise ComponentError(
                f"train.model_parallel is {self.model_parallel}, but train.layout divides no variable along "
                "'model'",
                hint="for instance train.layout: {'.*dense.*kernel': [null, model]}",
            )


def _axes(pattern: str, axes: Any) -> tuple[Axis | None, ...]:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ComponentError(f"train.layout: {pattern!r} is not a regular expression: {error}") from error
    if not isinstance(axes, list | tuple) or any(axis not in (None, *get_args(Axis)) for axis in axes):
        raise ComponentError(
            f"train.layout: {pattern!r} must list null, batch or model for each dimension, not {axes!r}"
        )
    return tuple(axes)
