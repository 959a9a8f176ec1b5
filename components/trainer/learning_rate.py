"""Scales the learning rate with the global batch, and warms it up."""

from typing import Any

import keras

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.learning_rate import LearningRateSettings


def scale_learning_rate(
    model: Any, settings: LearningRateSettings, *, batch_size: int, accumulate_steps: int = 1
) -> float:
    """Multiply the optimizer's learning rate by the factor for the global batch, and add a warm-up.

    Args:
        model: compiled, not yet trained here.
        settings: how to scale, and how long to warm up.
        batch_size: examples per update.
        accumulate_steps: steps per update, >= 1.

    Raises:
        ComponentError: see `optimizers_to_set`.
    """
    factor = settings.factor(batch_size)
    if factor == 1.0 and not settings.warmup_steps:
        return factor
    for optimizer in optimizers_to_set(model, "train.learning_rate"):
        rate = schedule = _schedule_of(optimizer)
        if schedule is None:
            rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
        if settings.warmup_steps or schedule is not None:
            # Keras counts steps in its calls of a schedule, including those that only accumulate gradients.
            steps = settings.warmup_steps * accumulate_steps
            # a model that was loaded with its optimizer has counted some already
            first = int(keras.ops.convert_to_numpy(optimizer.iterations))
            optimizer.learning_rate = WarmUp(rate, factor=factor, warmup_steps=steps, first_step=first)
        else:
            optimizer.learning_rate = rate * factor
    return factor


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """A learning rate or schedule, multiplied by a factor and warmed up linearly over the first steps.

    Args:
        rate: a number, a schedule, or a function without arguments.
        warmup_steps: steps until the full rate, >= 0; step n of these uses (n + 1) / warmup_steps of it.
        first_step: the number of the first of these steps.
    """

    def __init__(self, rate: Any, *, factor: float, warmup_steps: int, first_step: int = 0) -> None:
        super().__init__()
        self.rate = rate
        self.factor = factor
        self.warmup_steps = warmup_steps
        self.first_step = first_step

    def __call__(self, step: Any) -> Any:
        """Return the rate of the step with this number, counted from 0."""
        rate = self._rate_at(step)
        done = keras.ops.cast(step - self.first_step, "float32") + 1.0
        return rate * self.factor * keras.ops.minimum(1.0, done / max(1, self.warmup_steps))

    def _rate_at(self, step: Any) -> Any:
        if isinstance(self.rate, keras.optimizers.schedules.LearningRateSchedule):
            return self.rate(step)
        return self.rate() if callable(self.rate) else self.rate

    def get_config(self) -> dict[str, object]:
        """Return the configuration that Keras would save; the job holds the same values."""
        return {
            "rate": self.rate,
            "factor": self.factor,
            "warmup_steps": self.warmup_steps,
            "first_step": self.first_step,
        }


def scheduled_rate(model: Any) -> Any:
    """Return the schedule or function that gives a compiled model's learning rate; None if it is a number.

    Of several optimizers it is the first one's that has one.
    """
    return next(filter(None, map(_schedule_of, optimizers_of(model))), None)


def _schedule_of(optimizer: Any) -> Any:
    # The public property returns only its current value.
    rate = optimizer._learning_rate
    return None if isinstance(rate, keras.Variable) or not callable(rate) else rate


def optimizers_of(model: Any) -> list[Any]:
    """Return the optimizers that update the weights: one, which may be wrapped, or several.

    A MultiOptimizer that asks a function for them has none until it is built.
    """
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    return list(getattr(optimizer, "optimizers", [optimizer]))


def optimizers_to_set(model: Any, key: str) -> list[Any]:
    """Return the optimizers that a setting is for.

    Args:
        model: compiled, not yet trained here.
        key: of the setting, for the message.

    Raises:
        ComponentError: they are not known yet.
    """
    if found := optimizers_of(model):
        return found
    raise ComponentError(
        f"{key} is for each optimizer of the model, but its MultiOptimizer asks a function for them",
        hint="give it a keras.optimizers.OptimizerMap; or set the like in each of them, and not here",
    )
