"""The graph of a request, known from an earlier run or compiled now; and its plan."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from slipway.components.project import OWN_FOLDER
from slipway.pipeline.engine.processes.client import Server
from slipway.pipeline.fingerprint.parts import canonical_json, source_closure
from slipway.pipeline.plan.assemble import Plan, make_plan
from slipway.pipeline.plan.node_fingerprints import stack_versions
from slipway.pipeline.plan.run_request import Request
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import check_undamaged
from slipway.pipeline.runs.run_target import NodeLimits
from slipway.pipeline.runs.typed_json import plain
from slipway.pipeline.terminal.sign_of_life import sign_of_life


def plan_only(request: Request, history: History) -> Plan:
    """Decides what `execute` would do.

    Raises:
        UsageError: the metadata store is damaged; or as `Server.compile`.
    """
    check_undamaged(request.output / "metadata.db")
    return make_plan(request, history, find_graph(request))


def plan_kept(request: Request, history: History) -> Plan:
    """As `plan_only`, as if every node were cached: the results kept for the same code, data and settings."""
    check_undamaged(request.output / "metadata.db")
    graph = find_graph(request)
    nodes = tuple(replace(node, uncached="") for node in graph.nodes)
    return make_plan(request, history, replace(graph, nodes=nodes))


def find_graph(request: Request) -> Graph:
    """The graph of a request. TFX is imported only if the graph is not known yet."""
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
    """Rejects a --from or --to that names no node, before the run is created.

    Where the graph is not known yet, it is compiled, with TFX's import, for a name only that the workload's
    latest run does not have; a pipeline without a workload file is left to the run.

    Raises:
        UsageError: as `Graph.select`.
    """
    names = {name for name in (request.start, request.end) if name is not None}
    if not names or not request.is_workload:
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
    """The graph that was compiled before for the same request and code; None if there is none.

    Only a workload's graph can be known without compiling: what builds another pipeline may read anything.
    """
    if not request.is_workload:
        return None
    graph = history.recall_graph(_graph_key(request))
    return _with_limits(graph, request.nodes) if graph else None


def _graph_key(request: Request) -> str:
    builders = ("slipway.pipeline.dag.build_pipeline", "slipway.pipeline.engine.tfx.compile.compile_target")
    parts = {
        "target": plain(request.target),
        "parameters": request.parameters,
        "beam_args": list(request.beam_args),
        "code": source_closure(builders, root=OWN_FOLDER),
        "stack": dict(stack_versions()),
    }
    return "graph-" + hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def _with_limits(graph: Graph, limits: Mapping[str, NodeLimits]) -> Graph:
    for node_id in limits:
        graph[node_id]  # rejects a name that is not a node's
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
    """Has the server compile the pipeline, and stores the graph for `known_graph`.

    Args:
        run_id: what the run is called in the metadata store.
        tick: as in `Server.compile`, which also says what this raises.
    """
    graph = server.compile(request.order(run_id=run_id, folder=folder), tick=tick)
    if request.is_workload:
        history.remember(_graph_key(request), graph.to_json())
    return _with_limits(graph, request.nodes)
