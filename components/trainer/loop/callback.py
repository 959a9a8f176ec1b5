"""The base of the loop's Keras callbacks, which counts steps, and a schedule for periodic work."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from slipway.components.errors import ComponentError


@dataclass(frozen=True, kw_only=True)
class FitStart:
    """The position in the whole training at which a fit begins.

    Attributes:
        first_step: complete steps at the beginning.
        order: names the order of the rows within an epoch, see `fit.Input`.
        versions: of Keras and its backend, see `resume.keras_versions`.
    """

    steps_per_epoch: int
    first_step: int = 0
    order: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


class StepCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Counts the steps of the whole training, while Keras counts batches from the start of each epoch or fit.

    A subclass overrides `after_step`, and Keras' own methods for the rest.

    Attributes:
        step: complete steps.
        previous: step and loss of the previous call; None if there was none. The device has computed this
            loss already, while the current one would have to be waited for.
    """

    def __init__(self, start: FitStart) -> None:
        super().__init__()
        self.start = start
        self.step = start.first_step
        self.previous: tuple[int, Any] | None = None
        self._done_before = start.first_step
        self._epoch_end = start.steps_per_epoch

    @property
    def is_epoch_end(self) -> bool:
        """Whether the epoch's steps are complete."""
        return self.step >= self._epoch_end

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Record the step at which the epoch begins."""
        self.step = self._done_before = max(epoch * self.start.steps_per_epoch, self.start.first_step)
        self._epoch_end = (epoch + 1) * self.start.steps_per_epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Count the steps; with several steps in one call, `batch` is the last of them."""
        self.step = self._done_before + batch + 1
        loss = (logs or {}).get("loss")
        _require_one_number(loss)
        self.after_step(loss)
        self.previous = None if loss is None else (self.step, loss)

    def after_step(self, loss: Any) -> None:
        """Handle the end of a train function call; `loss`, the epoch's mean, may not be computed yet."""


def numbers_of(logs: Mapping[str, object] | None) -> dict[str, float]:
    """Return an epoch's metrics from Keras' logs as numbers; an array, such as F1Score's, becomes NAME_0, ...

    Values that are not numbers, which a user's callback may add to the logs, are left out.

    Raises:
        ComponentError: the loss is an array.
    """
    found: dict[str, float] = {}
    for name, value in (logs or {}).items():
        if name == "loss":
            _require_one_number(value)
        try:
            values = np.ravel(np.asarray(value)).astype(float).tolist()
        except (TypeError, ValueError):
            continue
        found |= {name: values[0]} if len(values) == 1 else {f"{name}_{i}": v for i, v in enumerate(values)}
    return found


def _require_one_number(loss: Any) -> None:
    if shape := tuple(getattr(loss, "shape", ())):
        raise ComponentError(
            f"the model's train_step returns a 'loss' of the shape {shape}, and not one number",
            hint="return its mean: keras.ops.mean(loss)",
        )


class PeriodicSchedule:
    """A schedule for something that is due every few steps or seconds.

    Args:
        steps: due after so many, >= 1; None: by the clock alone.
        seconds: due after so many, > 0; None: by the steps alone.
        first_step: complete steps at the beginning.
    """

    def __init__(
        self, *, steps: int | None = None, seconds: float | None = None, first_step: int = 0
    ) -> None:
        self._steps = steps
        self._seconds = seconds
        self.done(first_step)

    def is_due(self, step: int) -> bool:
        """Return True if a multiple of `steps` was reached, or `seconds` have passed, since the last time."""
        if self._steps is not None and step // self._steps > self._done_step // self._steps:
            return True
        return self._seconds is not None and time.monotonic() - self._done_at >= self._seconds

    def done(self, step: int) -> None:
        """Record that it was done after this step."""
        self._done_step, self._done_at = step, time.monotonic()
