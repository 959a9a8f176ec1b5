"""Makes the plan of a request from its graph (known or just compiled) and from earlier runs."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from slipway.components.errors import SlipwayError
from slipway.components.project import OWN_FOLDER, PROJECT_ROOT
from slipway.components.source_closure import source_closure
from slipway.pipeline.fingerprint.fingerprint import Fingerprint, canonical_json
from slipway.pipeline.fingerprint.rerun_reasons import reasons
from slipway.pipeline.plan.baseline_changes import retired_blessings
from slipway.pipeline.plan.decide import Decision, Known, decide
from slipway.pipeline.plan.named_files import named_files
from slipway.pipeline.plan.node_fingerprints import (
    fingerprint_nodes,
    own_parts,
    own_parts_in,
    stack_versions,
)
from slipway.pipeline.plan.resolver_keys import baseline_key, joined, reference_key
from slipway.pipeline.plan.run_request import Request
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import has_execution
from slipway.pipeline.runs.record import Result, RunRecord
from slipway.pipeline.runs.result_files import no_longer_kept
from slipway.pipeline.runs.run_target import NodeLimits
from slipway.pipeline.runs.typed_json import plain
from slipway.pipeline.wiring.preflight_question import compiler_versions


@dataclass(frozen=True)
class Plan:
    """A plan and its basis: the nodes' fingerprints, and what the resolvers will find."""

    graph: Graph
    prints: Mapping[str, Fingerprint]
    decisions: Mapping[str, Decision]
    baseline: str
    reference: str


def known_graph(request: Request, history: History) -> Graph | None:
    """Return the graph that was compiled before for the same request and code; None if there is none.

    Only a workload's graph can be known without compiling: the code that builds another pipeline may read
    anything.
    """
    # The key takes a second: all code that builds the graph is parsed.
    if not request.is_workload or not history.has_graphs():
        return None
    graph = history.recall_graph(graph_key(request))
    return _with_limits(graph, request.nodes) if graph else None


def keep_graph(request: Request, history: History, compiled: Graph, *, key: str) -> Graph:
    """Store a graph that was just compiled for `known_graph`; return it with the request's limits.

    Args:
        key: the result of `graph_key` before it was compiled.
    """
    if key:
        history.remember(key, compiled.to_json())
    return _with_limits(compiled, request.nodes)


def graph_key(request: Request) -> str:
    """Return the key of the graph that the request's code now builds; empty if it is not a workload's."""
    if not request.is_workload:
        return ""
    builders = ("slipway.pipeline.dag.build_pipeline", "slipway.pipeline.engine.tfx.compile.compile_target")
    parts = {
        "target": plain(request.target),
        "parameters": request.parameters,
        "beam_args": list(request.beam_args),
        "code": source_closure(builders, root=OWN_FOLDER),
        "stack": dict(stack_versions()),
        # Compiling looks up which texts are paths of files.
        "files": _named_in(request.workload_run.config),
        # Compiling also finds this setting of the Preflight node.
        "compiler": compiler_versions() if _asks_for_preflight(request.workload_run.config) else {},
    }
    return "graph-" + hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def _named_in(config: str) -> list[str]:
    settings = json.loads(config)
    files, _ = named_files(settings, node_type="", folders=[PROJECT_ROOT])
    # Folders only of what the user's own code reads: a run makes others, such as the destination.
    _, patterns = named_files(settings["train"]["hyperparameters"], node_type="", folders=[PROJECT_ROOT])
    return [*files, *patterns]


def _asks_for_preflight(config: str) -> bool:
    train = json.loads(config)["train"]
    return bool(train["preflight"]) and train["device"] == "tpu"


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


def make_plan(request: Request, history: History, graph: Graph, *, resumed: RunRecord | None = None) -> Plan:
    """Decide which nodes would run. Reads files and records; writes only the memo of data digests.

    Args:
        resumed: the run to continue; its completed nodes are kept even with `--no-cache`.
    """
    baseline = reference = ""
    own = {node.id: _own_parts(node, graph, request, history) for node in graph.nodes}
    prints = fingerprint_nodes(graph, own, baseline=baseline)
    retired, late = retired_blessings(request.output, graph.name), history.late_runs()
    for wanted in (node.finds_reference for node in graph.nodes if node.finds_reference):
        statistics = _makers(graph, "ExampleStatistics")
        data = prints[statistics[0]].key if statistics else ""
        reference = reference_key(
            history.runs(), workload=graph.name, data=data, wanted=wanted, retired=retired, late=late
        )
        prints = fingerprint_nodes(graph, own, baseline=baseline, reference=reference)
    if any(node.finds_baseline for node in graph.nodes):
        candidate = joined({name: prints[name].key for name in _makers(graph, "Model")})
        baseline = baseline_key(
            history.runs(), workload=graph.name, candidate=candidate, retired=retired, late=late
        )
        prints = fingerprint_nodes(graph, own, baseline=baseline, reference=reference)
    selected = graph.select(start=request.start, end=request.end)
    forced = selected if request.no_cache or request.start else set()
    store = request.store_file(graph.store)
    doubted = _doubted(graph, resumed or next(history.begun_runs(graph.name), None))

    def missing(entry: Result) -> str:
        if entry.get("unmet"):
            return ""
        execution_id = entry["execution_id"]
        if execution_id is not None and store and not has_execution(store, execution_id):
            return f"{store.name} does not know its result"
        is_doubted = entry.get("node") in doubted
        return no_longer_kept(
            entry, output=request.output.absolute(), now_s=time.time(), is_doubted=is_doubted
        )

    known = Known(
        history.recall,
        missing,
        history.last_fingerprints(graph.name),
        resumed=resumed.run_id if resumed else "",
    )
    decisions = decide(graph, prints=prints, known=known, selected=selected, forced=forced)
    return Plan(graph, prints, decisions, baseline, reference)


def _own_parts(node: Node, graph: Graph, request: Request, history: History) -> dict[str, str]:
    added = (folder for folder in map(Path, graph.import_from) if folder.is_dir())
    roots = tuple(dict.fromkeys((*request.code_roots, *added)))
    variables = {**request.keras, **graph.keras}
    store = Path(graph.store) if graph.store else None
    return own_parts(node, roots=roots, memo=history.digest_memo, variables=variables, store=store)


def _doubted(graph: Graph, latest: RunRecord | None) -> set[str]:
    """Return the nodes whose results a failed node of that run read, and which may therefore be damaged."""
    failed = (
        {node.id for node in latest.nodes if node.state == "failed" and not node.is_stop} if latest else set()
    )
    return {up for node in graph.nodes if node.id in failed for up in node.upstream}


def _makers(graph: Graph, type_name: str) -> list[str]:
    """Return the nodes that make artifacts of that type."""
    return [n.id for n in graph.nodes if type_name in n.outputs.values() and not n.is_resolver]


def changes_since(request: Request, plan: Plan, history: History, node_id: str) -> list[str]:
    """Return in words what has changed of the code and data of a node since the plan; empty if nothing has.

    What can no longer be read has changed: the run goes on, and says that the node is not cached.
    """
    try:
        now = _own_parts(plan.graph[node_id], plan.graph, request, history)
    except SlipwayError:
        return ["some can no longer be read"]
    return reasons(now, own_parts_in(plan.prints[node_id]))


def is_fingerprint_of(
    graph: Graph, node_id: str, fingerprint: Fingerprint, request: Request, history: History
) -> bool:
    """Return True if the code, data and settings of a node are now those of a fingerprint."""
    try:
        now = _own_parts(graph[node_id], graph, request, history)
    except SlipwayError:
        return False
    return now == own_parts_in(fingerprint)
