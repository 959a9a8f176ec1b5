"""Measures the time of a step, and how much of it is spent waiting for input.

The wait is counted, or derived from a comparison with a constant batch.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled

from slipway.components.trainer.checkpoint_files import Clock
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.loop.callback import FitStart, StepCallback
from slipway.components.trainer.loop.model_state import averages_weights, restore, snapshot

PROBE_SHARE = 0.02
"""Length of the probe, as a share of the seconds of all steps."""
MIN_PROBE_S = 0.2
MAX_PROBE_S = 5.0
"""Limits of its length in seconds: a shorter probe says little beside other work."""
PROBE_STEPS_TOGETHER = 20
"""Steps of the probe on several hosts: each step waits for all of them, so all must take equally many."""


def input_wait(devices: Devices) -> "InputWait | None":
    """Return a counter of the waiting time on these devices; None if it cannot be measured.

    Operations on a CPU end when their work does. Other devices work asynchronously, and may be busy while the
    next element is waited for. If operations must be deterministic, TensorFlow lets none read the clock.
    """
    return InputWait() if devices.kind == "cpu" and not is_op_determinism_enabled() else None


class InputWait:
    """Sums the time between requesting an iterator's element and receiving it, in the compiled function."""

    def __init__(self) -> None:
        with tf.device("/cpu:0"):
            self._seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)

    @property
    def seconds(self) -> float:
        """The waiting time so far."""
        return float(self._seconds.numpy())

    def next_of(self, iterator: Any) -> Any:
        """Return the next element of an iterator; called while a function is traced."""
        asked = tf.timestamp()
        with tf.control_dependencies([asked]):
            element = iterator.get_next()
        with tf.control_dependencies(tf.nest.flatten(element)):
            had = tf.timestamp()
        self._seconds.assign_add(had - asked)
        return element


class StepTimer(StepCallback):
    """Sums the seconds of steps, without this process's first one, which compiles, and without evaluation.

    A single step's time says little, because a device works asynchronously. The sum is right, from an epoch's
    first step to its last, whose loss is waited for. Must be the first of the callbacks.

    Attributes:
        clock: the measurements, including those of earlier attempts.

    Args:
        before: the measurements of earlier attempts.
        start: where in the training the fit begins.
        wait: measures how long steps wait for input; None: not measured.
    """

    def __init__(self, before: Clock, start: FitStart, wait: InputWait | None = None) -> None:
        super().__init__(start)
        self.clock = before
        self._wait = wait
        self._since: float | None = None
        self._waited_s = 0.0
        self._counted = start.first_step
        self._has_compiled = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Start to measure."""
        super().on_epoch_begin(epoch)
        if self._has_compiled:
            self._begin()

    def after_step(self, loss: Any) -> None:
        """Add the time since the previous call."""
        steps, self._counted = self.step - self._counted, self.step
        if self.is_epoch_end and loss is not None:
            float(loss)  # waits for the device
        if self._since is not None:
            self._add(steps)
        self._since = None
        if not self.is_epoch_end:
            self._begin()
        self._has_compiled = True

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the clock during the block. The device must be idle when the block begins."""
        is_stepping = self._since is not None
        if is_stepping:
            self._add(0)
        yield
        if is_stepping:
            self._begin()

    def _begin(self) -> None:
        self._waited_s = self._wait.seconds if self._wait else 0.0
        self._since = time.perf_counter()

    def _add(self, steps: int) -> None:
        now = time.perf_counter()
        self.clock = replace(
            self.clock,
            stepping_s=self.clock.stepping_s + (now - (self._since or now)),
            timed_steps=self.clock.timed_steps + steps,
            waiting_s=self.clock.waiting_s + (self._wait.seconds - self._waited_s if self._wait else 0.0),
        )


def constant_batch_step_s(model: Any, batches: Any, stepping: Clock, devices: Devices) -> float | None:
    """Return the seconds per step on one constant batch, to compare with those of the training's own steps.

    Trains the model further, so the weights must have been saved before. The comparison covers everything
    that input costs a step: waiting for it, and sharing the processor with it.
    Source of the method: MaxText's comparison with synthetic data.

    Args:
        model: as it was trained, so that nothing compiles anew.
        batches: a dataset; its first batch is used.
        stepping: the time of the training's own steps.
        devices: the devices that it was trained on.

    Returns:
        None if too few steps were timed to compare with.
    """
    if devices.hosts.count > 1:
        steps = PROBE_STEPS_TOGETHER
    elif stepping.timed_steps == 0 or stepping.stepping_s <= 0:
        return None
    else:
        probe_s = min(max(PROBE_SHARE * stepping.stepping_s, MIN_PROBE_S), MAX_PROBE_S)
        steps = max(2, round(probe_s * stepping.timed_steps / stepping.stepping_s))
    call = model.steps_per_execution
    steps = -(-steps // call) * call + call  # whole calls, plus the first, which is not timed
    batch = next(iter(batches))
    timer = StepTimer(Clock(), FitStart(steps_per_epoch=steps))
    constant = devices.prefetch_to_device(tf.data.Dataset.from_tensors(batch).repeat())
    if averages_weights(model):
        # At its end, fit made the weights share the arrays of their averages; JAX takes an array only once.
        restore(model, snapshot(model))
    model.fit(constant, epochs=1, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[timer])
    return timer.clock.stepping_s / timer.clock.timed_steps if timer.clock.timed_steps else None
