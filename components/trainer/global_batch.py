"""Rules of the global batch: how it is divided and padded, and what follows from its size."""

import math

from slipway.components.errors import ComponentError

LANES, SUBLANES = 128, 8
"""A TPU's registers hold 8 x 128 values; the compiler pads every other shape up to that.
Source: Cloud TPU performance guide, https://cloud.google.com/tpu/docs/performance-guide"""
MAX_STEPS_PER_EXECUTION = 50
"""Beyond this number no gain was measured, and checkpoints and signals have to wait longer."""
EXECUTION_LIMIT_S = 0.5
"""Seconds that one call of the compiled function may take: callbacks run only between calls."""
LEFT_OUT_SHARE = 0.02
"""Share of an epoch that may be left out to make it a multiple of the steps of an execution."""


def require_divisible(batch_size: int, *, replicas: int, hosts: int = 1) -> None:
    """Reject a global batch that cannot be divided evenly among the replicas and among the hosts.

    Args:
        batch_size: examples per step, over all replicas; >= 1.
        replicas: copies of the model, over all hosts; >= 1.
        hosts: the number of hosts, each of which loads its share of a batch; >= 1.

    Raises:
        ComponentError: the size is not a multiple of both; the message names the nearest sizes that are.
    """
    parts = math.lcm(replicas, hosts)
    if batch_size % parts == 0:
        return
    below, above = batch_size // parts * parts, -(-batch_size // parts) * parts
    what = f"the {replicas} replicas" if parts == replicas else f"{replicas} replicas on {hosts} hosts"
    raise ComponentError(
        f"train.batch_size ({batch_size}) must be a multiple of {what}",
        hint=f"use {f'{below} or {above}' if below else above}",
    )


def require_one_batch(batch_size: int, *, examples: int, full_batches: int) -> None:
    """Reject a batch size for which the training examples do not fill one batch.

    Raises:
        ComponentError: there are fewer examples than one batch needs.
    """
    if full_batches < 1:
        raise ComponentError(
            f"train.batch_size ({batch_size}) is larger than the {examples} training examples",
            hint=f"set train.batch_size to {examples} or less",
        )


def require_evaluation(examples: int, *, needed: int) -> None:
    """Reject an eval split that is too small to divide among the devices.

    Args:
        examples: in the eval split.
        needed: the fewest that make a batch.

    Raises:
        ComponentError: there are fewer.
    """
    if examples < needed:
        raise ComponentError(
            f"the eval split has {examples} examples, and these devices evaluate on at least {needed}",
            hint="split off more of the data for it, or train on fewer devices",
        )


def padding_advice(batch_size: int, *, replicas: int) -> str:
    """Describe the work that a TPU would waste because of the batch's size; "" if none.

    Args:
        batch_size: a multiple of `replicas`.
        replicas: cores that the batch is divided among.
    """
    each = batch_size // replicas
    if each % LANES == 0 or (each < LANES and each % SUBLANES == 0):
        return ""
    unit = SUBLANES if each < LANES else LANES
    padded = -(-each // unit) * unit
    return (
        f"{each} examples a core are padded to {padded}, {1 - each / padded:.0%} in vain; "
        f"best is train.batch_size {padded * replicas}"
    )


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
