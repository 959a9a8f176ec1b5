"""How a training step is computed, and how the learning rate follows the batch."""

from dataclasses import dataclass
from typing import ClassVar

from components.trainer.settings.group import SettingsGroup

PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")
XLA_USES = ("auto", "always", "never")
SCALES = ("none", "linear", "sqrt")


@dataclass(frozen=True, kw_only=True)
class StepSettings(SettingsGroup):
    """Keys of the workload's `train` that say how a step is computed.

    Attributes:
        precision: a Keras dtype policy; "auto" is mixed_bfloat16 on a TPU and float32 elsewhere.
        xla: whether TensorFlow compiles the step; "auto" where it helps. JAX always does.
        steps_per_execution: steps in one call of the compiled function, >= 1; None: as many as is sound.
        accumulate_steps: steps whose gradients are averaged into one update, >= 1.
    """

    key: ClassVar[str] = "step"

    precision: str = "auto"
    xla: str = "auto"
    steps_per_execution: int | None = None
    accumulate_steps: int = 1

    def __post_init__(self) -> None:
        self.require_choice("precision", PRECISIONS)
        self.require_choice("xla", XLA_USES)
        if self.steps_per_execution is not None:
            self.require_integer("steps_per_execution", 1)
        self.require_integer("accumulate_steps", 1)


@dataclass(frozen=True, kw_only=True)
class LearningRateSettings(SettingsGroup):
    """The workload's `train.learning_rate`: how the model's learning rate follows the global batch.

    Attributes:
        scale: "none", or "linear" or "sqrt" in the quotient of global batch and base_batch_size.
        base_batch_size: the batch that the model's own learning rate was chosen for; >= 1.
        warmup_steps: updates over which the rate rises from 0 to its value, >= 0.
    """

    key: ClassVar[str] = "learning_rate"
    section: ClassVar[str] = "learning_rate"

    scale: str = "none"
    base_batch_size: int = 256
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        self.require_choice("scale", SCALES)
        self.require_integer("base_batch_size", 1)
        self.require_integer("warmup_steps", 0)
