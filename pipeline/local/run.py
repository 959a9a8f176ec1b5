"""A local run from beginning to end: lock, plan, run, outcome. What the command line and notebooks call."""

import functools
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pipeline.config import NodeConfig
from pipeline.errors import PipelineError, UsageError
from pipeline.fingerprint import Fingerprint, canonical_json, source_closure
from pipeline.local.engine import Display, Engine
from pipeline.local.graph import Graph
from pipeline.local.history import History, new_run_id
from pipeline.local.invocation import command
from pipeline.local.lock import check_store, has_execution, locked
from pipeline.local.node_fingerprints import fingerprint_nodes, own_parts, stack_versions
from pipeline.local.outcome import complete_outcome, exit_code, file_sizes, missing_outputs
from pipeline.local.plan import Decision, Known, baseline_key, decide
from pipeline.local.processes import default_jobs, end_leftovers
from pipeline.local.record import NodeRecord, RunRecord
from pipeline.local.request import Request
from pipeline.local.server import Server
from pipeline.local.wording import DONE_BEFORE
from pipeline.root import PROJECT_ROOT

INTERRUPTED = 130  # what shells report after Ctrl-C: 128 + SIGINT


class RunDisplay(Display, Protocol):
    """What a run tells, from the first line to the last."""

    def begins(self, record: RunRecord) -> None:
        """The run has an id; nothing is imported yet."""

    def planned(self, record: RunRecord, expected_s: Mapping[str, float]) -> None:
        """It is decided what runs; `expected_s` holds each node's time in the latest run that ran it."""

    def waiting(self, record: RunRecord, what: str) -> None:
        """Time passes before nodes can start, e.g. while TFX is imported."""

    def ends(self, record: RunRecord) -> None:
        """The run is over."""

    def close(self) -> None:
        """Nothing more will be told; also called when the run ended in an error."""


@dataclass(frozen=True)
class Plan:
    """What would happen, and what it was decided from: the fingerprints, and the baseline's training."""

    graph: Graph
    prints: Mapping[str, Fingerprint]
    decisions: Mapping[str, Decision]
    baseline: str


def execute(request: Request, *, display: RunDisplay, resumed: RunRecord | None = None) -> RunRecord:
    """Runs a pipeline, or goes on with a run.

    Args:
        request: what to run.
        display: gets told.
        resumed: the record of a run that did not complete; its finished nodes are kept.

    Returns:
        The run's record, finished, as `run.json` holds it.

    Raises:
        UsageError: the request does not fit; nothing was run.
        PipelineError: the engine itself could not go on.
    """
    began = time.monotonic()
    history = History(request.output)
    run_id = resumed.run_id if resumed else new_run_id()
    with locked(request.output, run_id=run_id):
        end_leftovers(request.output / "runs")
        check_store(request.output / "metadata.db")
        record = (
            _continued(resumed)
            if resumed
            else history.new_run(request.workload, request.to_json(), run_id=run_id)
        )
        record.overrides = dict(request.overrides)
        history.save(record)
        display.begins(record)
        try:
            interrupted = _run(request, history, record, display)
        except KeyboardInterrupt:
            interrupted = True
        except PipelineError as error:
            if isinstance(error, UsageError) and not resumed:
                history.discard(record)  # nothing was run: there is nothing to resume or to look at
            else:
                _close(history, record, began, state="failed", code=error.exit_code)
            raise
        complete_outcome(record)
        code = INTERRUPTED if interrupted else exit_code(record)
        states = {0: "complete", 1: "failed", 3: "stopped", INTERRUPTED: "interrupted"}
        _close(history, record, began, state=states[code], code=code)
    return record


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
    baseline = ""
    prints = fingerprint_nodes(graph, roots=roots, memo=memo, baseline=baseline)
    if any(node.finds_baseline for node in graph.nodes):
        trainer = next(
            (n.id for n in graph.nodes if "Model" in n.outputs.values() and not n.is_resolver), None
        )
        candidate = prints[trainer].key if trainer else ""
        baseline = baseline_key(history.runs(), workload=request.workload, candidate=candidate)
        prints = fingerprint_nodes(graph, roots=roots, memo=memo, baseline=baseline)
    selected = graph.select(start=request.start, end=request.end)
    forced = selected if request.no_cache or request.start else set()
    if resumed is not None:
        forced = forced - {node.id for node in resumed.nodes if node.state == "complete"}
    store = request.output / "metadata.db"

    def missing(entry: Mapping[str, Any]) -> str:
        if request.keeps_store(store) and not has_execution(store, entry["execution_id"]):
            return "metadata.db does not know its result"
        return missing_outputs(dict(entry))

    known = Known(history.recall, missing, history.last_fingerprints(request.workload))
    decisions = decide(graph, prints=prints, known=known, selected=selected, forced=forced)
    return Plan(graph, prints, decisions, baseline)


def _is_current(request: Request, plan: Plan, history: History, node_id: str) -> bool:
    """Whether the code and the data of a node are still those that the plan saw."""
    now = fingerprint_nodes(
        plan.graph, roots=request.code_roots, memo=history.digest_memo, baseline=plan.baseline
    )
    return own_parts(now[node_id]) == own_parts(plan.prints[node_id])


def plan_only(request: Request) -> Plan:
    """Decides what `execute` would do. TFX is imported only where the graph is not known yet."""
    history = History(request.output)
    graph = known_graph(request, history)
    if graph is None:
        with history.scratch() as folder, Server(folder) as server:
            graph = _compile(request, server, history, run_id="plan", tick=lambda: None)
    return make_plan(request, history, graph)


def known_graph(request: Request, history: History) -> Graph | None:
    """The graph that was compiled for the same request and the same code before; None where there is none.

    Only a workload's graph can be known without compiling: what builds another pipeline may read anything.
    """
    if "config" not in request.target:
        return None
    entry = history.recall(_graph_key(request))
    return _with_limits(Graph.from_json(entry), request.nodes) if entry else None


def _graph_key(request: Request) -> str:
    builders = ("pipeline.dag.build_pipeline", "pipeline.local.compile.compile_pipeline")
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
    return Graph(graph.name, tuple(nodes))


def _run(request: Request, history: History, record: RunRecord, display: RunDisplay) -> bool:
    """Plans and runs; True when the user interrupted."""
    resumed = record if record.resumed else None
    graph = known_graph(request, history)
    plan = make_plan(request, history, graph, resumed=resumed) if graph else None
    if plan and all(decision.action != "run" for decision in plan.decisions.values()):
        _begin_nodes(history, record, plan)
        display.planned(record, _expected_s(history, record))
        return False
    with Server(history.folder(record.run_id)) as server:
        attempt = f"{record.run_id}.{record.resumed}" if record.resumed else record.run_id
        tick = functools.partial(display.waiting, record, "importing TFX")
        graph = _compile(request, server, history, run_id=attempt, tick=tick)
        if resumed:
            _take_up(record, server, history, tick=tick)
        plan = make_plan(request, history, graph, resumed=resumed)
        _begin_nodes(history, record, plan)
        display.planned(record, _expected_s(history, record))
        reused = {i: d.source for i, d in plan.decisions.items() if d.source is not None}
        results = server.reuse(reused, tick=lambda: display.tick(record, {}))
        for node_id in reused.keys() - results.keys():
            entry = record.node(node_id)
            entry.state, entry.why = "waiting", "the metadata store does not know its earlier result"
        engine = Engine(
            record=record,
            graph=graph,
            decisions=plan.decisions,
            prints=plan.prints,
            server=server,
            history=history,
            display=display,
            jobs=request.jobs or default_jobs(),
            fail_fast=request.fail_fast,
            still_current=functools.partial(_is_current, request, plan, history),
        )
        engine.run()
        return engine.interrupted


def _take_up(record: RunRecord, server: Server, history: History, *, tick: Callable[[], None]) -> None:
    """Remembers what nodes have completed of which an engine that was killed could not take note."""
    last = record.run_id if record.resumed == 1 else f"{record.run_id}.{record.resumed - 1}"
    published = server.published([last], tick=tick)
    for entry in record.nodes:
        if entry.id in published and entry.key and entry.state not in ("complete", "cached"):
            result = {
                "execution_id": published[entry.id]["execution_id"],
                "outputs": published[entry.id]["outputs"],
            }
            kept = {"node": entry.id, "run_id": record.run_id, "files": file_sizes(result["outputs"])}
            history.remember(entry.key, {**kept, **result})


def _compile(
    request: Request, server: Server, history: History, *, run_id: str, tick: Callable[[], None]
) -> Graph:
    values = {
        "target": dict(request.target),
        "run_id": run_id,
        "parameters": dict(request.parameters),
        "beam_args": list(request.beam_args),
    }
    graph = server.compile(values, tick=tick)
    if "config" in request.target:
        history.remember(_graph_key(request), graph.to_json())
    return _with_limits(graph, request.nodes)


def _begin_nodes(history: History, record: RunRecord, plan: Plan) -> None:
    earlier = {node.id: node for node in record.nodes}
    record.nodes = []
    for node in plan.graph.nodes:
        decision = plan.decisions[node.id]
        entry = earlier.get(node.id) or NodeRecord(id=node.id)
        entry.type, entry.why = node.type, decision.why
        entry.key = plan.prints[node.id].key
        if decision.source is not None:
            own = decision.source["run_id"] == record.run_id
            entry.state = "complete" if own else "cached"
            entry.why = DONE_BEFORE if own else decision.why
            entry.execution_id, entry.outputs = (
                decision.source["execution_id"],
                dict(decision.source["outputs"]),
            )
        else:
            entry.state = "skipped" if decision.action == "skip" else "waiting"
            entry.attempts, entry.error, entry.is_stop = 0, None, False
        record.nodes.append(entry)
    history.save_fingerprints(record.run_id, plan.prints)
    history.save(record)


def _continued(record: RunRecord) -> RunRecord:
    record.resumed += 1
    record.state, record.exit_code = "running", None
    return record


def _expected_s(history: History, record: RunRecord) -> dict[str, float]:
    expected: dict[str, float] = {}
    for run in history.runs():
        if run.workload == record.workload and run.run_id != record.run_id:
            for node in run.nodes:
                if node.state == "complete":
                    expected.setdefault(node.id, node.wall_s)
    return expected


def _close(history: History, record: RunRecord, began: float, *, state: Any, code: int) -> None:
    record.state, record.exit_code = state, code
    record.wall_s = round(time.monotonic() - began, 3)
    try:
        history.save(record)
        history.append_event(record.run_id, {"run": record.run_id, "state": state, "exit_code": code})
    except OSError as error:
        folder = history.folder(record.run_id)
        raise PipelineError(
            f"{folder} cannot be written: {error.strerror}. What is finished is kept.",
            hint=f"make room, then {command('resume', record.run_id, output=history.output)}",
        ) from error
