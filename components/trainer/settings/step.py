"""Settings for the computation of a training step, and for the learning rate."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from slipway.components.settings import setting
from slipway.components.trainer.global_batch import Scale
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
