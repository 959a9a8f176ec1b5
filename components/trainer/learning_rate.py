"""Scales the learning rate with the global batch, and warms it up."""

from typing import Any

import keras

from slipway.components.trainer.global_batch import learning_rate_factor
from slipway.components.trainer.settings.step import LearningRateSettings


def scale_learning_rate(
    model: Any, settings: LearningRateSettings, *, batch_size: int, accumulate_steps: int = 1
) -> float:
    """Multiplies the optimizer's learning rate by what the global batch asks for, and lets it warm up.

    Args:
        model: compiled, its optimizer not yet built.
        batch_size: examples an update.
        accumulate_steps: steps an update, >= 1.

    Returns:
        The factor.
    """
    factor = learning_rate_factor(
        settings.scale,
        batch_size=batch_size,
        base_batch_size=settings.base_batch_size,
    )
    if factor == 1.0 and not settings.warmup_steps:
        return factor
    optimizer = inner_optimizer(model)
    rate = optimizer._learning_rate  # a schedule itself; the property gives its value now
    is_schedule = isinstance(rate, keras.optimizers.schedules.LearningRateSchedule)
    if not is_schedule:
        rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
    if is_schedule or settings.warmup_steps:
        # Keras counts steps where it asks a schedule, also those that only add up gradients.
        steps = settings.warmup_steps * accumulate_steps
        optimizer.learning_rate = WarmUp(rate, factor=factor, warmup_steps=steps)
    else:
        optimizer.learning_rate = rate * factor
    return factor


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A rate, or another schedule, times a factor, that rises linearly in the first steps.

    Args:
        rate: a number, or a schedule.
        factor: multiplies it.
        warmup_steps: steps until it is reached, >= 0; step n of them has (n + 1) / warmup_steps of it.
    """

    def __init__(self, rate: Any, *, factor: float, warmup_steps: int) -> None:
        super().__init__()
        self.rate = rate
        self.factor = factor
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> Any:
        """The rate of the step with that number, counted from 0."""
        rate = self.rate(step) if callable(self.rate) else self.rate
        done = keras.ops.cast(step, "float32") + 1.0
        return rate * self.factor * keras.ops.minimum(1.0, done / max(1, self.warmup_steps))

    def get_config(self) -> dict[str, object]:
        """Returns what Keras would save; the job says the same."""
        return {"rate": self.rate, "factor": self.factor, "warmup_steps": self.warmup_steps}


def inner_optimizer(model: Any) -> Any:
    """The optimizer that updates: a LossScaleOptimizer holds it inside."""
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)
