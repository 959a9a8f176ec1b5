"""Rules of the global batch: how it is divided among devices and hosts, and padded. Pure."""

import math

from slipway.components.errors import ComponentError

LANES, SUBLANES = 128, 8
"""A TPU's registers hold 8 x 128 values; the compiler pads every other shape up to that.
Source: Cloud TPU performance guide, https://cloud.google.com/tpu/docs/performance-guide"""
WORTH_TELLING = 0.05
"""A batch of which a smaller share is padding is not reported."""


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
    """Describe the work that a TPU would waste for the size of the batch; "" if below `WORTH_TELLING`.

    It is the most that can be: the compiler may lay out a matrix so that it needs less padding, and a step
    of few examples takes as long as its weights take to be read, however many of its rows are padding.

    Args:
        batch_size: a multiple of `replicas`.
        replicas: cores that the batch is divided among.
    """
    each = batch_size // replicas
    unit = SUBLANES if each < LANES else LANES
    padded = -(-each // unit) * unit
    share = 1 - each / padded
    if share < WORTH_TELLING:
        return ""
    return (
        f"{each} examples a core are padded to {padded}, up to {share:.0%} of the work on them in vain "
        "(less of the time of a step that waits for its weights); "
        f"best is train.batch_size {padded * replicas}"
    )
