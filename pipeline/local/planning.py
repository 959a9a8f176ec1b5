"""The plan of a request: from its graph, known or compiled now, and from what earlier runs left."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.config import NodeConfig
from pipeline.fingerprint import Fingerprint, canonical_json, source_closure
from pipeline.local.baseline import retired_blessings
from pipeline.local.graph import Graph
from pipeline.local.history import History
from pipeline.local.kept_files import no_longer_kept
from pipeline.local.lock import check_undamaged, has_execution
from pipeline.local.node_fingerprints import fingerprint_nodes, own_parts, stack_versions
from pipeline.local.plan import Decision, Known, baseline_key, decide, reference_key
from pipeline.local.record import RunRecord
from pipeline.local.request import Request
from pipeline.local.server import Server
from pipeline.local.sign_of_life import sign_of_life
from pipeline.root import PROJECT_ROOT


@dataclass(frozen=True)
class Plan:
    """What would happen, and what it was decided from: the fingerprints, and what the resolvers will find."""

    graph: Graph
    prints: Mapping[str, Fingerprint]
    decisions: Mapping[str, Decision]
    baseline: str
    reference: str


def make_plan(request: Request, history: History, graph: Graph, *, resumed: RunRecord | None = None) -> Plan:
    """Decides what would run. Reads files and records; changes nothing but the memo of data digests.

    Args:
        request: what is asked for.
        history: what earlier runs left.
        graph: the compiled pipeline.
        resumed: the run that is gone on with; what it completed is kept also under `--no-cache`.
    """
    memo = history.digest_memo
    roots = request.code_roots
    baseline = reference = ""
    prints = fingerprint_nodes(graph, roots=roots, memo=memo, baseline=baseline)
    retired = retired_blessings(request.output, graph.name)
    for wanted in (node.finds_reference for node in graph.nodes if node.finds_reference):
        statistics = _maker(graph, "ExampleStatistics")
        data = prints[statistics].key if statistics else ""
        reference = reference_key(
            history.runs(), workload=graph.name, data=data, wanted=wanted, retired=retired
        )
        prints = fingerprint_nodes(graph, roots=roots, memo=memo, baseline=baseline, reference=reference)
    if any(node.finds_baseline for node in graph.nodes):
        trainer = _maker(graph, "Model")
        candidate = prints[trainer].key if trainer else ""
        baseline = baseline_key(history.runs(), workload=graph.name, candidate=candidate, retired=retired)
        prints = fingerprint_nodes(graph, roots=roots, memo=memo, baseline=baseline, reference=reference)
    selected = graph.select(start=request.start, end=request.end)
    forced = selected if request.no_cache or request.start else set()
    store = request.store_file(graph.store)
    doubted = _doubted(graph, resumed or next(history.begun_runs(graph.name), None))

    def missing(entry: Mapping[str, Any]) -> str:
        if entry.get("unmet"):
            return ""
        has_found = entry["execution_id"] is not None
        if has_found and store and not has_execution(store, entry["execution_id"]):
            return f"{store.name} does not know its result"
        return no_longer_kept(entry, now_s=time.time(), is_doubted=entry.get("node") in doubted)

    known = Known(
        history.recall,
        missing,
        history.last_fingerprints(graph.name),
        resumed=resumed.run_id if resumed else "",
    )
    decisions = decide(graph, prints=prints, known=known, selected=selected, forced=forced)
    return Plan(graph, prints, decisions, baseline, reference)


def _doubted(graph: Graph, latest: RunRecord | None) -> set[str]:
    """The nodes whose results a node took that failed in that run: what it could not read may be damaged."""
    failed = (
        {node.id for node in latest.nodes if node.state == "failed" and not node.is_stop} if latest else set()
    )
    return {up for node in graph.nodes if node.id in failed for up in node.upstream}


def _maker(graph: Graph, type_name: str) -> str | None:
    """The node that makes artifacts of that type."""
    makers = (node.id for node in graph.nodes if type_name in node.outputs.values() and not node.is_resolver)
    return next(makers, None)


def is_current(request: Request, plan: Plan, history: History, node_id: str) -> bool:
    """Whether the code and the data of a node are still those that the plan saw."""
    now = fingerprint_nodes(
        plan.graph,
        roots=request.code_roots,
        memo=history.digest_memo,
        baseline=plan.baseline,
        reference=plan.reference,
    )
    return own_parts(now[node_id]) == own_parts(plan.prints[node_id])


def plan_only(request: Request, history: History) -> Plan:
    """Decides what `execute` would do.

    Raises:
        UsageError: the metadata store is damaged; or as `Server.compile`.
    """
    check_undamaged(request.output / "metadata.db")
    return make_plan(request, history, find_graph(request))


def plan_kept(request: Request, history: History) -> Plan:
    """As `plan_only`, were every node cached: which results of the same code, data and settings are kept."""
    check_undamaged(request.output / "metadata.db")
    graph = find_graph(request)
    nodes = tuple(replace(node, uncached="") for node in graph.nodes)
    return make_plan(request, history, replace(graph, nodes=nodes))


def find_graph(request: Request) -> Graph:
    """The graph of what is asked for. TFX is imported only where it is not known yet."""
    history = History(request.output)
    graph = known_graph(request, history)
    if graph is None:
        with (
            history.scratch() as folder,
            Server(folder, temporary=folder / "tmp", is_ours=request.is_workload) as server,
        ):
            graph = compile_graph(request, server, history, folder=folder, run_id="plan", tick=lambda: None)
    return graph


def check_nodes(request: Request, history: History) -> None:
    """Refuses a --from or --to that names no node, before there is a run of it.

    Where the graph is not known yet, it is compiled, with TFX's import, for a name only that the workload's
    latest run does not have; a pipeline without a workload file is left to the run.

    Raises:
        UsageError: as `Graph.select`.
    """
    names = {name for name in (request.start, request.end) if name is not None}
    if not names or "config" not in request.target:
        return
    graph = known_graph(request, history)
    if graph is None:
        latest = next(history.latest_runs(request.workload, limit=1), None)
        if latest is not None and names <= {node.id for node in latest.nodes}:
            return
        with sign_of_life(f"{request.workload}: looks up {', '.join(sorted(names))}"):
            graph = find_graph(request)
    graph.select(start=request.start, end=request.end)


def known_graph(request: Request, history: History) -> Graph | None:
    """The graph that was compiled for the same request and the same code before; None where there is none.

    Only a workload's graph can be known without compiling: what builds another pipeline may read anything.
    """
    if "config" not in request.target:
        return None
    graph = history.recall_graph(_graph_key(request))
    return _with_limits(graph, request.nodes) if graph else None


def _graph_key(request: Request) -> str:
    builders = ("pipeline.dag.build_pipeline", "pipeline.local.compile.compile_target")
    parts = {
        "target": dict(request.target),
        "parameters": dict(request.parameters),
        "beam_args": list(request.beam_args),
        "code": source_closure(builders, root=PROJECT_ROOT),
        "stack": dict(stack_versions()),
    }
    return "graph-" + hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def _with_limits(graph: Graph, limits: Mapping[str, NodeConfig]) -> Graph:
    for node_id in limits:
        graph[node_id]  # refuses a name that is no node's
    nodes = (
        replace(n, retries=limit.retries, timeout_s=limit.timeout_s, backoff_s=limit.backoff_s)
        if (limit := limits.get(n.id))
        else n
        for n in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes))


def compile_graph(
    request: Request,
    server: Server,
    history: History,
    *,
    folder: Path,
    run_id: str,
    tick: Callable[[], None],
) -> Graph:
    """Has the server compile the pipeline, and keeps the graph for `known_graph`.

    Args:
        request: what to compile.
        server: compiles.
        history: keeps.
        folder: of the run.
        run_id: what the run is called in the metadata store.
        tick: as in `Server.compile`, which also says what this raises.
    """
    values = {
        "target": request.target_in(folder),
        "run_id": run_id,
        "parameters": dict(request.parameters),
        "beam_args": list(request.beam_args),
    }
    graph = server.compile(values, tick=tick)
    if "config" in request.target:
        history.remember(_graph_key(request), graph.to_json())
    return _with_limits(graph, request.nodes)
