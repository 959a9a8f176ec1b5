"""A Keras callback that measures what a step takes, over whole epochs, and how much of it is waiting."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras

from components.trainer.checkpoint import Clock
from components.trainer.loop.input_wait import InputWait


class Stepping(keras.callbacks.Callback):  # type: ignore[misc]
    """Adds up the seconds of steps: not the first of this process, which compiles, and not the evaluation.

    A step's own time says little, as a device works behind: the sum is right, from an epoch's first step to
    its last, whose loss is waited for. Must be the first of the callbacks.

    Args:
        before: what earlier attempts have measured.
        wait: counts for how long steps wait for input; None: nothing does.
    """

    def __init__(self, before: Clock, wait: InputWait | None = None) -> None:
        super().__init__()
        self.stepping_s = before.stepping_s
        self.timed_steps = before.timed_steps
        self.waiting_s = before.waiting_s
        self._wait = wait
        self._since: float | None = None
        self._waited_s = 0.0
        self._batch = -1
        self._has_compiled = False

    def clock(self, *, fit_s: float) -> Clock:
        """What was measured, with the seconds of fitting that somebody else knows."""
        return Clock(
            fit_s=fit_s,
            stepping_s=self.stepping_s,
            timed_steps=self.timed_steps,
            waiting_s=self.waiting_s,
        )

    def on_epoch_begin(self, _epoch: int, logs: Any = None) -> None:
        """Counts batches anew."""
        self._batch = -1
        if self._has_compiled:
            self._begin()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Adds the time since the call before."""
        steps, self._batch = batch - self._batch, batch
        last = batch + 1 >= (self.params.get("steps") or 0)
        if last and "loss" in (logs or {}):
            float(logs["loss"])  # waits for the device
        if self._since is not None:
            self._add()
            self.timed_steps += steps
        self._since = None
        if not last:
            self._begin()
        self._has_compiled = True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is done in between is not a step's work. The device must be idle when it begins."""
        is_stepping = self._since is not None
        if is_stepping:
            self._add()
        yield
        if is_stepping:
            self._begin()

    def _begin(self) -> None:
        self._waited_s = self._wait.seconds if self._wait else 0.0
        self._since = time.perf_counter()

    def _add(self) -> None:
        now = time.perf_counter()
        self.stepping_s += now - (self._since or now)
        if self._wait:
            self.waiting_s += self._wait.seconds - self._waited_s
