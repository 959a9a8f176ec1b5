"""A Keras callback that tells steps and epochs as events."""

import time
from typing import Any

import keras

from components.trainer.events import emit

STEP_EVENT_INTERVAL_S = 0.5


class Progress(keras.callbacks.Callback):  # type: ignore[misc]
    """Emits `step` at most twice a second, and `epoch`.

    Args:
        epochs: of the whole training.
        steps_per_epoch: steps in each.
        first_step: how many steps are complete at the beginning.
    """

    def __init__(self, *, epochs: int, steps_per_epoch: int, first_step: int) -> None:
        super().__init__()
        self._epochs = epochs
        self._steps_per_epoch = steps_per_epoch
        self._first_step = first_step
        self._done_before = first_step
        self._emitted_at = time.monotonic()
        self._previous: tuple[int, Any] | None = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Notes where the epoch's steps begin to count."""
        self._done_before = max(epoch * self._steps_per_epoch, self._first_step)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Tells the loss of the call before: reading that of the current one would make the device wait."""
        now = time.monotonic()
        if self._previous is not None and now - self._emitted_at >= STEP_EVENT_INTERVAL_S:
            self._emitted_at = now
            step, loss = self._previous
            total = self._epochs * self._steps_per_epoch
            emit("step", step=step, steps=total, loss=round(float(loss), 6))
        # Keras counts from 0; with several steps in one call, `batch` is the last of them.
        loss = (logs or {}).get("loss")
        self._previous = None if loss is None else (self._done_before + batch + 1, loss)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Tells the epoch's metrics."""
        metrics = {name: float(value) for name, value in (logs or {}).items()}
        emit("epoch", epoch=epoch + 1, epochs=self._epochs, metrics=metrics)
