"""Finds the graph of a request, and plans it, before there is a run."""

from dataclasses import replace

from slipway.pipeline.engine.processes.client import ForkServerClient
from slipway.pipeline.engine.processes.warm import WarmProcess
from slipway.pipeline.plan.make_plan import Plan, graph_key, keep_graph, known_graph, make_plan
from slipway.pipeline.plan.run_request import TRAINING_NODES, Request
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import check_undamaged
from slipway.pipeline.terminal.sign_of_life import sign_of_life

# Number of newest runs of which one that has nodes is looked for.
_RUNS_FOR_NAMES = 5


def plan_only(request: Request, history: History, *, warm: WarmProcess | None = None) -> Plan:
    """Plan what `execute` would do.

    Args:
        warm: the process to fork from; None imports TFX in a new process if the graph is not known yet.

    Raises:
        UsageError: the metadata store is damaged; the Python that would train is not there; or as
            `ForkServerClient.compile`.
    """
    check_undamaged(request.output / "metadata.db")
    plan = make_plan(request, history, find_graph(request, warm=warm))
    if any(plan.decisions[node].action == "run" for node in TRAINING_NODES & plan.decisions.keys()):
        request.check_interpreter()
    return plan


def plan_kept(request: Request, history: History) -> Plan:
    """Plan like `plan_only`, but treat every node as cacheable.

    The plan shows which results are kept for the same code, data and settings.
    """
    check_undamaged(request.output / "metadata.db")
    graph = find_graph(request)
    nodes = tuple(replace(node, uncached="") for node in graph.nodes)
    return make_plan(request, history, replace(graph, nodes=nodes))


def find_graph(request: Request, *, warm: WarmProcess | None = None) -> Graph:
    """Return the graph of a request. TFX is imported only if it is not known yet, and without `warm`."""
    history = History(request.output)
    graph = known_graph(request, history)
    if graph is None:
        with (
            history.scratch() as folder,
            ForkServerClient(
                folder, temporary=folder / "tmp", is_ours=request.is_workload, warm=warm
            ) as server,
        ):
            server.begin_compiling(request.order(run_id="plan", folder=folder))
            key = graph_key(request)
            graph = keep_graph(request, history, server.compiled(tick=lambda: None), key=key)
    return graph


def check_nodes(request: Request, history: History) -> None:
    """Reject a --from or --to that names no node, before the run is created.

    If the graph is not known yet, it is compiled (which imports TFX) only for a name that the workload's
    latest run does not have. A pipeline without a workload file is checked later, by the run.

    Raises:
        UsageError: as `Graph.select`.
    """
    names = {name for name in (request.start, request.end) if name is not None}
    if not names or not request.is_workload:
        return
    graph = known_graph(request, history)
    if graph is None:
        # A run that has just begun, side by side with this one, has no nodes yet.
        earlier = history.latest_runs(request.workload, limit=_RUNS_FOR_NAMES)
        latest = next((run for run in earlier if run.nodes), None)
        if latest is not None and names <= {node.id for node in latest.nodes}:
            return
        with sign_of_life(f"{request.workload}: looks up {', '.join(sorted(names))}"):
            graph = find_graph(request)
    graph.select(start=request.start, end=request.end)
