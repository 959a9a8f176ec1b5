"""Decides whether a node that failed is tried again, and when. Pure."""

from dataclasses import dataclass

from slipway.pipeline.runs.graph import Node
from slipway.pipeline.runs.record import NodeRecord

# Backoff doubles with each retry up to this.
MAX_BACKOFF_S = 600.0
# How often a node is restarted after an outside SIGTERM with its state kept; that is not a retry.
_MAX_PREEMPTIONS = 20


@dataclass(frozen=True, slots=True)
class Retry:
    """The next attempt at a node.

    Attributes:
        wait_s: seconds until then.
        why: what the node waits for, in words.
        is_preemption: whether the node was only interrupted from outside and goes on from what it kept.
    """

    wait_s: float
    why: str
    is_preemption: bool = False


def next_attempt(
    entry: NodeRecord, node: Node, *, message: str, is_stop: bool, is_preempted: bool
) -> Retry | None:
    """The next attempt at a node that failed; None, where this was the last.

    Args:
        entry: its record, with the attempts so far, this one included.
        node: with `retries` and `backoff_s`.
        is_stop: whether it is a gate that stopped the run. It repeats its answer however often it is asked,
            and is not tried again.
        is_preempted: whether it was told to end from outside, and kept its state.
    """
    if is_preempted and entry.preemptions < _MAX_PREEMPTIONS:
        return Retry(node.backoff_s, f"starts again: {message}", is_preemption=True)
    attempts = entry.attempts - entry.preemptions
    if is_stop or attempts > node.retries:
        return None
    wait_s = backoff_s(node.backoff_s, attempts=attempts)
    return Retry(wait_s, f"retry {attempts} of {node.retries} in {wait_s:g} s: {message}")


def backoff_s(first_s: float, *, attempts: int) -> float:
    """Seconds to wait before the next attempt: `first_s`, doubled for each retry, at most `MAX_BACKOFF_S`.

    Args:
        first_s: before the first retry, >= 0.
        attempts: how many there were, >= 1.
    """
    return min(first_s * 2.0 ** min(attempts - 1, 64), MAX_BACKOFF_S)
