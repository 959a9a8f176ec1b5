"""The time of a step, and how much of it is waiting for input: counted, or compared with a constant batch."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.config import is_op_determinism_enabled

from slipway.components.trainer.checkpoint import Clock
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.loop.callback import Place, StepCallback

PROBE_SHARE = 0.02
"""How long the probe lasts, as a share of the seconds of all steps."""
MIN_PROBE_S = 0.2
MAX_PROBE_S = 5.0
"""Seconds that it lasts at least and at most: a shorter one says little beside other work."""
PROBE_STEPS_TOGETHER = 20
"""Steps that it takes on several hosts: each step waits for all of them, so all must take as many."""


def input_wait(devices: Devices) -> "InputWait | None":
    """Returns a counter of the wait on these devices; None where it cannot be counted.

    A CPU's operations end when their work does. Other devices work behind, and may be busy while the next
    element is waited for. Where operations must be deterministic, TensorFlow lets none read the clock.
    """
    return InputWait() if devices.kind == "cpu" and not is_op_determinism_enabled() else None


class InputWait:
    """Adds up the time between asking an iterator for an element and having it, in the compiled function."""

    def __init__(self) -> None:
        with tf.device("/cpu:0"):
            self._seconds = tf.Variable(0.0, dtype=tf.float64, trainable=False)

    @property
    def seconds(self) -> float:
        """The wait so far."""
        return float(self._seconds.numpy())

    def next_of(self, iterator: Any) -> Any:
        """The next element of an iterator; called while a function is traced."""
        asked = tf.timestamp()
        with tf.control_dependencies([asked]):
            element = iterator.get_next()
        with tf.control_dependencies(tf.nest.flatten(element)):
            had = tf.timestamp()
        self._seconds.assign_add(had - asked)
        return element


class StepTimer(StepCallback):
    """Adds up the seconds of steps: not the first of this process, which compiles, and not the evaluation.

    A step's own time says little, as a device works behind: the sum is right, from an epoch's first step to
    its last, whose loss is waited for. Must be the first of the callbacks.

    Attributes:
        clock: what was measured, in earlier attempts too.

    Args:
        before: what earlier attempts have measured.
        place: of the fit.
        wait: counts for how long steps wait for input; None: nothing does.
    """

    def __init__(self, before: Clock, place: Place, wait: InputWait | None = None) -> None:
        super().__init__(place)
        self.clock = before
        self._wait = wait
        self._since: float | None = None
        self._waited_s = 0.0
        self._counted = place.first_step
        self._has_compiled = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Begins to measure."""
        super().on_epoch_begin(epoch)
        if self._has_compiled:
            self._begin()

    def after_step(self, loss: Any) -> None:
        """Adds the time since the call before."""
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
        """Stops the clock for the block. The device must be idle when it begins."""
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
    """Seconds of a step on one constant batch, to be compared with those of the training's own steps.

    Trains on: the weights must have been saved before. The comparison counts what input costs the step in
    any way: waiting for it, and sharing the processor with it.
    Source of the method: MaxText's comparison with synthetic data.

    Args:
        model: as it was trained, so that nothing compiles anew.
        batches: a dataset; its first batch is taken.
        stepping: the training's own steps.
        devices: that it was trained on.

    Returns:
        None where too few steps were timed to compare with.
    """
    if devices.hosts.count > 1:
        steps = PROBE_STEPS_TOGETHER
    elif stepping.timed_steps == 0 or stepping.stepping_s <= 0:
        return None
    else:
        probe_s = min(max(PROBE_SHARE * stepping.stepping_s, MIN_PROBE_S), MAX_PROBE_S)
        steps = max(2, round(probe_s * stepping.timed_steps / stepping.stepping_s))
    call = model.steps_per_execution
    steps = -(-steps // call) * call + call  # whole calls, and the first is not timed
    batch = next(iter(batches))
    timer = StepTimer(Clock(), Place(steps_per_epoch=steps))
    constant = devices.ahead(tf.data.Dataset.from_tensors(batch).repeat())
    model.fit(constant, epochs=1, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[timer])
    return timer.clock.stepping_s / timer.clock.timed_steps if timer.clock.timed_steps else None
