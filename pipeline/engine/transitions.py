"""Decides which of a run's nodes are due, which cannot run, and what the end of an attempt means. Pure.

Nothing here starts processes, waits or writes: the scheduler carries out the decisions.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from slipway.pipeline.engine.attempt import Attempt
from slipway.pipeline.engine.failure import Failed
from slipway.pipeline.engine.retries import Retry, next_attempt
from slipway.pipeline.runs.graph import Graph, Node, ready
from slipway.pipeline.runs.record import Failure, NodeOutputs, NodeRecord, NodeState, RunRecord

_UNMET = "its condition was not met"
# As one that wants more spans than there are.
_NOT_TRIGGERED = "its resolver function leaves it out"


@dataclass(frozen=True, slots=True)
class Transition:
    """A node's new state.

    Attributes:
        state: the state; `waiting` if the node is tried again.
        why: in words, as in `NodeRecord`.
        is_stop: whether the node is a gate that stopped the run.
        is_unmet: whether the node is left out because its condition, or that of a node it needs, was not
            met. The same holds in later runs.
    """

    state: NodeState
    why: str
    error: Failure | None = None
    is_stop: bool = False
    is_unmet: bool = False
    retry: Retry | None = None


def due(
    graph: Graph, record: RunRecord, *, unmet: Collection[str], not_before: Mapping[str, float], now: float
) -> list[str]:
    """Return the waiting nodes that may start now, in topological order.

    Args:
        unmet: nodes left out because a condition was not met.
        not_before: when nodes that failed are tried again.
        now: the current time, on the clock of `not_before`.
    """
    waiting = {
        node.id for node in record.nodes if node.state == "waiting" and not_before.get(node.id, now) <= now
    }
    done = {node.id for node in record.nodes if node.is_done}
    return ready(graph, waiting=waiting, done=done, unmet=unmet)


def passed_on(up: NodeRecord, unmet: Collection[str]) -> str:
    """Return why the nodes after `up` cannot run; empty if `up` does not prevent it.

    The first cause is passed on.

    Args:
        unmet: as in `due`; some nodes can run without these.
    """
    if up.state == "failed":
        return f"{up.id} {'stopped the run' if up.is_stop else 'failed'}"
    return up.why if up.state == "skipped" and up.id not in unmet else ""


def blocked(node: Node, graph: Graph, record: RunRecord, unmet: Collection[str]) -> Transition | None:
    """Return the new state of a waiting node that can no longer run; None while it can.

    Arguments as in `due`.
    """
    for up in map(record.node, node.upstream):
        if why := passed_on(up, unmet):
            return Transition("skipped", why)
        if up.id in unmet and up.id not in node.optional:
            return Transition("skipped", f"{up.id} was skipped", is_unmet=True)
    # Through cached results, the node may depend on one that failed in this run.
    failed = (up for up in map(record.node, sorted(graph.upstream_of(node.upstream))) if up.state == "failed")
    return next((Transition("skipped", passed_on(up, unmet)) for up in failed), None)


def after_attempt(
    entry: NodeRecord,
    node: Node,
    result: NodeOutputs | Failed,
    attempt: Attempt,
    *,
    interrupted: bool,
    unmet: Collection[str],
) -> Transition:
    """Return the new state of a node whose process has ended.

    Args:
        entry: the node's record, with the attempts so far, including this one.
        attempt: says whether and why the process was signalled to end.
        unmet: as in `due`.
    """
    if result["state"] == "failed":
        return _after_failure(entry, node, result, attempt, interrupted=interrupted, unmet=unmet)
    if result["state"] == "skipped":
        return Transition("skipped", _UNMET if node.has_condition else _NOT_TRIGGERED, is_unmet=True)
    found_nothing = result["execution_id"] is None
    return Transition(result["state"], "found nothing" if found_nothing else result.get("why", entry.why))


def _after_failure(
    entry: NodeRecord,
    node: Node,
    result: Failed,
    attempt: Attempt,
    *,
    interrupted: bool,
    unmet: Collection[str],
) -> Transition:
    if interrupted or not attempt.is_at_fault:
        return Transition("skipped", attempt.reason or "interrupted")
    absent = [up for up in node.upstream if up in unmet]
    if absent and result.get("lacks_inputs"):
        return Transition("skipped", f"{absent[0]} was skipped", is_unmet=True)
    error, is_stop = _error(result, attempt), "verdict" in result and not attempt.reason
    is_preempted = bool(result.get("is_preempted")) and not attempt.reason
    retry = next_attempt(entry, node, message=error["message"], is_stop=is_stop, is_preempted=is_preempted)
    if retry is not None:
        return Transition("waiting", retry.why, error, is_stop, retry=retry)
    return Transition("failed", entry.why, error, is_stop)


def _error(result: Failed, attempt: Attempt) -> Failure:
    if attempt.reason:
        return Failure(message=attempt.reason, hint="", where="")
    error = Failure(message=result["message"], hint=result["hint"], where=result["where"])
    if start := result.get("start"):
        error["start"] = start
    return error
