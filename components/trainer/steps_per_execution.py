"""Chooses how many steps one call of the compiled training function takes. Pure."""

from slipway.components.errors import ComponentError

MAX_STEPS_PER_EXECUTION = 50
"""Beyond this number no gain was measured, and checkpoints and signals have to wait longer."""
EXECUTION_LIMIT_S = 0.5
"""Seconds that one call of the compiled function may take: callbacks run only between calls."""
LEFT_OUT_SHARE = 0.02
"""Share of an epoch that may be left out to make it a multiple of the steps of an execution."""


def choose_steps_per_execution(steps_per_epoch: int, *, step_s: float, limit: int | None = None) -> int:
    """Choose how many steps one call of the compiled function takes.

    Keras runs every call to its end, so the steps of an epoch must be a multiple of this number. The
    remainder is left out, see `whole_executions`.

    Args:
        steps_per_epoch: full batches in an epoch, >= 1.
        step_s: estimated seconds per step, >= 0.
        limit: the upper limit of the result, >= 1; None: no limit.

    Returns:
        From 1 to `MAX_STEPS_PER_EXECUTION`: the largest number that leaves out at most `LEFT_OUT_SHARE` of an
        epoch and takes at most `EXECUTION_LIMIT_S`.
    """
    most = min(steps_per_epoch, MAX_STEPS_PER_EXECUTION, limit or MAX_STEPS_PER_EXECUTION)
    if most * step_s > EXECUTION_LIMIT_S:
        most = max(1, int(EXECUTION_LIMIT_S / step_s))
    allowed = steps_per_epoch * LEFT_OUT_SHARE
    return next(steps for steps in range(most, 0, -1) if steps_per_epoch % steps <= allowed)


def whole_executions(steps_per_epoch: int, steps_per_execution: int) -> int:
    """Return the steps of an epoch that fill whole calls.

    Raises:
        ComponentError: they do not fill even one call.
    """
    if steps_per_execution > steps_per_epoch:
        raise ComponentError(
            f"train.steps_per_execution ({steps_per_execution}) is above the {steps_per_epoch} of an epoch",
            hint=f"set it to {steps_per_epoch} or less, or leave it out",
        )
    return steps_per_epoch // steps_per_execution * steps_per_execution
