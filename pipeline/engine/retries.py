"""Decides whether and when a failed node is retried. Pure."""

from dataclasses import dataclass

from slipway.pipeline.runs.graph import Node
from slipway.pipeline.runs.record import NodeRecord

# Upper limit of the backoff, which doubles with each retry.
MAX_BACKOFF_S = 600.0
# Number of restarts after an external SIGTERM with kept state; these do not count as retries.
_MAX_PREEMPTIONS = 20


@dataclass(frozen=True, slots=True)
class Retry:
    """The next attempt at a node.

    Attributes:
        wait_s: seconds until the attempt starts.
        is_preemption: whether the node was only interrupted from outside and continues from its kept state.
    """

    wait_s: float
    why: str
    is_preemption: bool = False


def next_attempt(
    entry: NodeRecord, node: Node, *, message: str, is_stop: bool, is_preempted: bool
) -> Retry | None:
    """Return the next attempt at a failed node; None if this was the last.

    Args:
        entry: the node's record, with the attempts so far, including this one.
        node: holds `retries` and `backoff_s`.
        is_stop: whether the node is a gate that stopped the run. A gate is not retried: it would give the
            same answer.
        is_preempted: whether the node was terminated from outside and kept its state.
    """
    if is_preempted and entry.preemptions < _MAX_PREEMPTIONS:
        return Retry(node.backoff_s, f"starts again: {message}", is_preemption=True)
    attempts = entry.attempts - entry.preemptions
    if is_stop or attempts > node.retries:
        return None
    wait_s = backoff_s(node.backoff_s, attempts=attempts)
    return Retry(wait_s, f"retry {attempts} of {node.retries} in {wait_s:g} s: {message}")


def backoff_s(first_s: float, *, attempts: int) -> float:
    """Return the seconds to wait before the next attempt: doubled for each retry, at most `MAX_BACKOFF_S`.

    Args:
        first_s: the wait before the first retry, >= 0.
        attempts: the number of attempts so far, >= 1.
    """
    return min(first_s * 2.0 ** min(attempts - 1, 64), MAX_BACKOFF_S)
