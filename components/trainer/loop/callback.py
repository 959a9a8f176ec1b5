"""The base of the loop's Keras callbacks: the number of each step, and what is due when."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from slipway.components.errors import ComponentError


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in the whole training this fit begins.

    Attributes:
        steps_per_epoch: steps in each epoch.
        first_step: how many steps are complete at the beginning.
    """

    steps_per_epoch: int
    first_step: int = 0


class StepCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Counts the steps of the whole training, where Keras counts batches from each epoch's or fit's begin.

    A subclass overrides `after_step`, and Keras' own methods for the rest.

    Attributes:
        place: where the fit begins.
        step: how many steps are complete.
        previous: step and loss of the call before; None where there was none. The device has computed it,
            where it would have to be waited for with the loss of the current one.
    """

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.step = place.first_step
        self.previous: tuple[int, Any] | None = None
        self._done_before = place.first_step
        self._epoch_end = place.steps_per_epoch

    @property
    def is_epoch_end(self) -> bool:
        """Whether the epoch's steps are complete."""
        return self.step >= self._epoch_end

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Notes where the epoch's steps begin to count."""
        self.step = self._done_before = max(epoch * self.place.steps_per_epoch, self.place.first_step)
        self._epoch_end = (epoch + 1) * self.place.steps_per_epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Counts; with several steps in one call, `batch` is the last of them."""
        self.step = self._done_before + batch + 1
        loss = (logs or {}).get("loss")
        _require_one_number(loss)
        self.after_step(loss)
        self.previous = None if loss is None else (self.step, loss)

    def after_step(self, loss: Any) -> None:
        """Called after each call of the train function with the epoch's mean loss, maybe not computed yet."""


def numbers_of(logs: Mapping[str, Any] | None) -> dict[str, float]:
    """The metrics of an epoch as Keras gives them; one of several numbers, as F1Score's, becomes NAME_0, ...

    What is no number, as a callback of the user's may add it to the logs, is left out.

    Raises:
        ComponentError: the loss has several.
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


class Every:
    """Tells when something is due that is done now and then.

    Args:
        steps: after so many, >= 1; None: by the clock alone.
        seconds: after so many, > 0; None: by the steps alone.
        first_step: how many steps are complete at the beginning.
    """

    def __init__(
        self, *, steps: int | None = None, seconds: float | None = None, first_step: int = 0
    ) -> None:
        self._steps = steps
        self._seconds = seconds
        self.done(first_step)

    def is_due(self, step: int) -> bool:
        """Whether a multiple of `steps` was reached, or `seconds` have passed, since it was done."""
        if self._steps is not None and step // self._steps > self._done_step // self._steps:
            return True
        return self._seconds is not None and time.monotonic() - self._done_at >= self._seconds

    def done(self, step: int) -> None:
        """Notes that it was done after that step."""
        self._done_step, self._done_at = step, time.monotonic()
