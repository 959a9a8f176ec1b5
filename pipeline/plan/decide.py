"""Decides for each node whether it has to run, and why. Pure: earlier results are passed in."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from slipway.pipeline.fingerprint.fingerprint import Fingerprint, explain
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.record import Result

Action = Literal["run", "reuse", "skip"]
# Number of reasons to show on one line; `show --json` has them all.
_SHOWN_REASONS = 3


@dataclass(frozen=True)
class Decision:
    """The decision for one node, with its reason.

    Attributes:
        action: `run`; `reuse` an earlier result; `skip`: not requested.
        why: in words, e.g. `workloads/taxi/model.py changed` or `cached from 20261120-210000-1f2e`.
        source: with `reuse`, the cached result: `{run_id, execution_id, outputs}`.
        is_unmet: with `skip`, whether its condition, or that of a node it needs, was not met before.
        is_forced: with `run`, whether it runs even if a cached result exists.
    """

    node_id: str
    action: Action
    why: str
    source: Result | None = None
    is_forced: bool = False
    is_unmet: bool = False


@dataclass(frozen=True)
class Known:
    """The results of earlier runs.

    Attributes:
        recall: returns the cached result for a key, or None; in a result with `unmet`, that field says in
            words why a condition left the node out.
        missing: returns in words which of a result's outputs are gone; empty if all are there.
        fingerprints: for each node, the fingerprint of its latest completed result.
        resumed: the run to continue, whose own results are taken in any case; empty if there is none.
    """

    recall: Callable[[str], Result | None]
    missing: Callable[[Result], str]
    fingerprints: Mapping[str, Fingerprint]
    resumed: str = ""


def decide(
    graph: Graph,
    *,
    prints: Mapping[str, Fingerprint],
    known: Known,
    selected: Collection[str],
    forced: Collection[str],
) -> dict[str, Decision]:
    """Decide for every node of the graph.

    A node reuses an earlier result if its fingerprint is the same, the result still exists, and no node
    upstream runs, or has run since: two trainings with equal settings need not have equal results, so
    everything downstream of a node that runs has to run too, in a later run if its own failed before, or
    ended there (`--to`). There are two exceptions. A resolver upstream does not make a node
    run, because it only looks something up and its result is part of the fingerprint, unless a node runs
    that may change this result. And a gate does not make the nodes run that only wait for it.

    Args:
        selected: the nodes of `--from` and `--to`; others are reused if needed, otherwise skipped.
        forced: nodes that run even if cached (`--no-cache`, `--from`); those of `Node.uncached` do, too.
    """
    needed = graph.upstream_of(selected)
    running: set[str] = set()
    while True:
        decisions: dict[str, Decision] = {}
        for node in graph.nodes:
            if node.id not in needed:
                decisions[node.id] = Decision(node.id, "skip", "excluded (--to)")
                continue
            reran = _reran(node, graph, decisions, running)
            read = _read(node, graph, decisions)
            decisions[node.id] = _decide(node, prints[node.id], known, reran, read, node.id in forced)
            absent = [up for up in node.upstream if decisions[up].is_unmet and up not in node.optional]
            if absent and decisions[node.id].action == "run":
                decisions[node.id] = Decision(node.id, "skip", f"{absent[0]} was skipped", is_unmet=True)
        before, running = running, {i for i, decision in decisions.items() if decision.action == "run"}
        # A resolver may look at nodes later in the order, so decide again until the running nodes are stable.
        if running == before or not any(node.looks_at for node in graph.nodes):
            return decisions


def _reran(node: Node, graph: Graph, decided: Mapping[str, Decision], running: Collection[str]) -> list[str]:
    """Return the rerunning nodes that a node's result depends on.

    Args:
        running: all nodes that run as far as is known, including later ones.
    """
    given = [
        up
        for up in node.upstream
        if up not in node.gates
        and (not graph[up].is_resolver or any(looked in running for looked in graph[up].looks_at))
    ]
    reran = [up for up in given if decided[up].action == "run"]
    return list(dict.fromkeys([*reran, *(looked for looked in node.looks_at if looked in running)]))


def _read(node: Node, graph: Graph, decided: Mapping[str, Decision]) -> dict[str, Result]:
    """Return the reused results that a node would read now; for a resolver, what it finds counts instead."""
    ups = [] if node.is_resolver else [up for up in node.upstream if up not in node.gates]
    return {up: source for up in ups if not graph[up].is_resolver and (source := decided[up].source)}


def _outdated(result: Result, read: Mapping[str, Result]) -> str:
    """Describe how a result was not made of what its node would read now; empty if it was."""
    made_of = result.get("read", {})
    for up, source in read.items():
        if made_of.get(up, source["execution_id"]) != source["execution_id"]:
            return f"{up} ran again in {source['run_id']}"
    return ""


def _decide(
    node: Node,
    now: Fingerprint,
    known: Known,
    reran: Sequence[str],
    read: Mapping[str, Result],
    is_forced: bool,
) -> Decision:
    result = known.recall(now.key)
    is_own = bool(known.resumed) and result is not None and result["run_id"] == known.resumed
    if (is_forced or node.uncached) and not is_own:
        why = "requested (--no-cache or --from)" if is_forced else node.uncached
        return Decision(node.id, "run", why, is_forced=True)
    gone = known.missing(result) or _outdated(result, read) if result is not None else ""
    if result is not None and not gone and not reran:
        if result.get("unmet"):
            return Decision(node.id, "skip", f"{result['unmet']}, as in {result['run_id']}", is_unmet=True)
        return Decision(node.id, "reuse", f"cached from {result['run_id']}", result)
    reasons = [f"{up} runs" for up in reran]
    if gone:
        reasons.append(gone)
    if result is None:
        changes = explain(now, known.fingerprints.get(node.id))
        # A change passed on from upstream is already explained by the upstream node that runs.
        own = [text for text in changes if not any(up in text for up in reran)]
        reasons = own + [text for text in reasons if not own]
    return Decision(node.id, "run", _joined(reasons or ["no earlier result is kept"]))


def _joined(reasons: list[str]) -> str:
    shown = "; ".join(reasons[:_SHOWN_REASONS])
    more = len(reasons) - _SHOWN_REASONS
    return f"{shown}; and {more} more" if more > 0 else shown
