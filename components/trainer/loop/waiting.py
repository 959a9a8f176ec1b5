"""What a step takes when it never waits for input: the same batch again and again."""

from typing import Any

import tensorflow as tf

from components.trainer.checkpoint import Clock
from components.trainer.devices.devices import Devices
from components.trainer.loop.stepping import Stepping

PROBE_SHARE = 0.02
"""How long the probe lasts, as a share of the seconds of all steps."""
MIN_PROBE_S = 0.2
MAX_PROBE_S = 5.0
"""Seconds that it lasts at least and at most: a shorter one says little beside other work."""
PROBE_STEPS_TOGETHER = 20
"""Steps that it takes on several hosts: each step waits for all of them, so all must take as many."""


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
    timer = Stepping(Clock())
    constant = devices.ahead(tf.data.Dataset.from_tensors(batch).repeat())
    model.fit(constant, epochs=1, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[timer])
    measured = timer.clock(fit_s=0.0)
    return measured.stepping_s / measured.timed_steps if measured.timed_steps else None
