"""Settings for the computation of a training step."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from slipway.components.setting_fields import setting
from slipway.components.trainer.settings.group import SettingsGroup

Precision = Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"]
XlaUse = Literal["auto", "always", "never"]


@dataclass(frozen=True, kw_only=True)
class StepSettings(SettingsGroup):
    """Keys of the workload's `train` that say how a step is computed."""

    key: ClassVar[str] = "step"

    precision: Precision = setting(
        "auto", "Keras dtype policy; auto: mixed_bfloat16 on a TPU, float32 elsewhere."
    )
    xla: XlaUse = setting("auto", "Whether TensorFlow compiles the step with XLA; auto: if it helps.")
    steps_per_execution: int | None = setting(
        None, "Steps in one call of the compiled function; null: chosen automatically.", ge=1
    )
    accumulate_steps: int = setting(
        1, "Steps whose gradients are averaged into one update of the weights.", ge=1
    )
