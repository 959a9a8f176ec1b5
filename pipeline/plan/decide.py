"""Decides for each node whether it has to run, and says why. Pure: earlier results are passed in."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from slipway.pipeline.fingerprint.parts import Fingerprint, explain
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.record import Result

Action = Literal["run", "reuse", "skip"]
# More reasons than this do not help on one line; `show --json` has them all.
_SHOWN_REASONS = 3


@dataclass(frozen=True)
class Decision:
    """The decision for one node, with its reason.

    Attributes:
        action: `run`; `reuse` an earlier result; `skip`: not asked for.
        why: in words, e.g. `workloads/taxi/model.py changed` or `cached from 20261120-210000-1f2e`.
        source: with `reuse`, the remembered result: `{run_id, execution_id, outputs}`.
        is_unmet: with `skip`, whether its condition, or that of a node it needs, was not met before.
        is_forced: with `run`, whether it would run even if it is cached.
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
        recall: the remembered result for a key, or None; one with `unmet` says in words why there is none.
        missing: which of a result's outputs are gone, in words; empty when all are there.
        fingerprints: for each node, the fingerprint under which it was last done.
        resumed: the run that is continued, whose own results are taken in any case; or "".
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
    """Decides for every node of the graph.

    A node reuses an earlier result when its fingerprint is the same, the result still exists, and no node
    upstream runs: two trainings of equal settings need not be equal, so what hangs on one that runs, runs.
    A resolver is no reason: it only looks something up, and its answer is part of the fingerprint; unless a
    node runs that may change the answer. A gate is none for those that only wait for it.

    Args:
        prints: the fingerprint of each node as things stand now.
        selected: the nodes of `--from` and `--to`; those outside are reused where needed, else skipped.
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
            decisions[node.id] = _decide(node, prints[node.id], known, reran, node.id in forced)
        before, running = running, {i for i, decision in decisions.items() if decision.action == "run"}
        # A resolver may look at nodes later in the order: then all is decided once more, knowing them.
        if running == before or not any(node.looks_at for node in graph.nodes):
            return decisions


def _reran(node: Node, graph: Graph, decided: Mapping[str, Decision], running: Collection[str]) -> list[str]:
    """The rerunning nodes that a node's outcome depends on.

    Args:
        running: the nodes that run for all that is known, also of those after it.
    """
    given = [
        up
        for up in node.upstream
        if up not in node.gates
        and (not graph[up].is_resolver or any(looked in running for looked in graph[up].looks_at))
    ]
    reran = [up for up in given if decided[up].action == "run"]
    return list(dict.fromkeys([*reran, *(looked for looked in node.looks_at if looked in running)]))


def _decide(node: Node, now: Fingerprint, known: Known, reran: Sequence[str], is_forced: bool) -> Decision:
    result = known.recall(now.key)
    is_own = bool(known.resumed) and result is not None and result["run_id"] == known.resumed
    if (is_forced or node.uncached) and not is_own:
        why = "requested (--no-cache or --from)" if is_forced else node.uncached
        return Decision(node.id, "run", why, is_forced=True)
    gone = known.missing(result) if result is not None else ""
    if result is not None and not gone and not reran:
        if result.get("unmet"):
            return Decision(node.id, "skip", f"{result['unmet']}, as in {result['run_id']}", is_unmet=True)
        return Decision(node.id, "reuse", f"cached from {result['run_id']}", result)
    reasons = [f"{up} runs" for up in reran]
    if gone:
        reasons.append(gone)
    if result is None:
        changes = explain(now, known.fingerprints.get(node.id))
        # A change that only passes through from upstream is already explained by the node that runs there.
        own = [text for text in changes if not any(up in text for up in reran)]
        reasons = own + [text for text in reasons if not own]
    return Decision(node.id, "run", _joined(reasons or ["no earlier result is kept"]))


def _joined(reasons: list[str]) -> str:
    shown = "; ".join(reasons[:_SHOWN_REASONS])
    more = len(reasons) - _SHOWN_REASONS
    return f"{shown}; and {more} more" if more > 0 else shown
