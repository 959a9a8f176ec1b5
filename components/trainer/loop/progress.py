"""A Keras callback that tells steps and epochs as events, and stops a training that has blown up."""

import math
import time
from typing import Any

import keras

from components.errors import ComponentError
from components.trainer.events import emit

STEP_EVENT_INTERVAL_S = 0.5


class Progress(keras.callbacks.Callback):  # type: ignore[misc]
    """Emits `step` at most twice a second, and `epoch`.

    Args:
        epochs: of the whole training.
        steps_per_epoch: steps in each.
    """

    def __init__(self, *, epochs: int, steps_per_epoch: int) -> None:
        super().__init__()
        self._epochs = epochs
        self._steps_per_epoch = steps_per_epoch
        self._done_before_epoch = 0
        self._emitted_at = time.monotonic()
        self._previous: tuple[int, Any] | None = None

    def on_epoch_begin(self, epoch: int, _logs: Any = None) -> None:
        """Notes where the epoch's steps begin to count."""
        self._done_before_epoch = epoch * self._steps_per_epoch

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
        self._previous = None if loss is None else (self._done_before_epoch + batch + 1, loss)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Tells the epoch's metrics.

        Raises:
            ComponentError: the loss is no longer a finite number.
        """
        metrics = {name: float(value) for name, value in (logs or {}).items()}
        if not math.isfinite(metrics["loss"]):
            raise ComponentError(
                f"the loss is {metrics['loss']} after epoch {epoch + 1}",
                hint="lower the learning rate, or look for infinite or huge values in the features",
            )
        emit("epoch", epoch=epoch + 1, epochs=self._epochs, metrics=metrics)
