"""A run in steps that another program, such as Airflow, controls: begin it, run each node, finish it.

Each step is a separate process, and several may run at the same time. The other program decides when a node
is due and how often it is retried. Everything else is as in a run of the local engine: the same plan,
cache, time limits, records and logs.
"""

import functools
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.local_run import is_all_known, known_plan, prepare
from slipway.pipeline.engine.processes.client import ForkServerClient
from slipway.pipeline.engine.processes.os_processes import end_leftovers
from slipway.pipeline.engine.processes.temporary import temporary_folder
from slipway.pipeline.engine.processes.warm import WarmProcess
from slipway.pipeline.engine.result_store import CachedResults
from slipway.pipeline.engine.run_end import Ending, Listener, close, give_up
from slipway.pipeline.engine.scheduler import Engine
from slipway.pipeline.engine.signal_handlers import raise_interrupt, signals_handled_by
from slipway.pipeline.engine.transitions import passed_on
from slipway.pipeline.errors import InUseError, PipelineError, UsageError, raised_as
from slipway.pipeline.exit_codes import DONE, FAILED, GATE_STOPPED, INTERRUPTED
from slipway.pipeline.plan.decide import Decision
from slipway.pipeline.plan.make_plan import Plan, changes_since, graph_key, keep_graph
from slipway.pipeline.plan.run_request import Request
from slipway.pipeline.plan.state_folders import states_of_step
from slipway.pipeline.runs.diff import read_fingerprints
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import check_store, locked, working
from slipway.pipeline.runs.outcome import discard_results_behind_stopped_gates
from slipway.pipeline.runs.record import Failure, NodeRecord, RunRecord, file_name, write_json
from slipway.pipeline.runs.shared_history import SharedHistory
from slipway.pipeline.runs.typed_json import DocumentError, read_document
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.screen.wording import rerun_command
from slipway.pipeline.terminal.invocation import CLOUD, command

# Time that `finish` waits for a step that is at work. One that was told to end saves its state first.
_END_WAIT_S = 600.0
# The file in a run's folder that holds its graph, for `finish`.
_GRAPH = "graph.json"
_NOT_TAKEN = "its step did not run"
# The error of a step whose process ended before it could report one.
_LOST = Failure(message="its step was ended from outside", hint="", where="")


# Who takes the steps gives up at wrong usage, and tries a step again that failed.
_tried_again = raised_as(PipelineError, InUseError)


@_tried_again
def begin(
    request: Request,
    *,
    display: RunDisplay,
    airflow: str = "",
    warm: WarmProcess | None = None,
    listeners: Sequence[Listener] = (),
) -> RunRecord:
    """Create a run and plan it; cached nodes are done at once.

    Args:
        airflow: as in `RunRecord`, for hints.
        warm: the process to fork from; None imports TFX in a new process.
        listeners: called at the run's end, if it cannot be planned.

    Raises:
        UsageError: the request is invalid; there is no run.
        PipelineError: the run could not be planned, or another process is at work in the folder.
    """
    began = time.monotonic()
    history = History(request.output)
    with working(request.output, request.workload, run_id="step begin", in_steps=True):
        check_store(request.output / "metadata.db")
        # With an id from now on: it may have waited for runs, after which it has to sort.
        record = history.new_run(request.workload, request.recorded)
        record.overrides, record.in_steps, record.airflow = dict(request.overrides), True, airflow
        history.save(record)
        display.begins(record)
        folder, journal = record.folder, Journal(record, history, began)
        try:
            if not is_all_known(known_plan(request, journal), request, journal, display):
                own = _step_folder(folder, "begin")
                with (
                    signals_handled_by(raise_interrupt),
                    temporary_folder(own) as temporary,
                    ForkServerClient(
                        own, temporary=temporary, warm=warm, is_ours=request.is_workload
                    ) as server,
                ):
                    plan = prepare(request, journal, display, server)
                write_json(folder / _GRAPH, plan.graph.to_json())
        except PipelineError as error:
            give_up(journal, error, listeners)
            raise
        except KeyboardInterrupt:
            history.discard(record)
            raise
        history.save(record)
    return record


@_tried_again
def run_node(
    run_id: str, node_id: str, *, output: Path, display: RunDisplay, warm: WarmProcess | None = None
) -> tuple[RunRecord, int]:
    """Run one node of a run whose upstream nodes are done.

    A node that is already done is left as it is. A node that failed or was terminated is tried again.

    Args:
        output: the folder that holds the run, absolute.

    Returns:
        The run's record, with this node and those before it, and the exit code: 0 done; 1 failed; 3 a gate
        stopped the run; 130 interrupted.

    Raises:
        UsageError: there is no such run or node.
        PipelineError: an upstream node is not done; or another process runs the node, or is at work in the
            folder.
    """
    history = SharedHistory(output, node_id)
    begun = _of_steps(history, run_id)
    run_id, request = begun.run_id, Request.of(begun)  # it may be named by the start of its id, or `latest`
    with working(output, request.workload, run_id=run_id, in_steps=True):
        record = _of_steps(history, run_id)
        entry = _entry(record, node_id)
        if entry.state in ("complete", "cached"):
            display.changed(record, entry)
            return record, DONE
        folder = _step_folder(history.folder(run_id), node_id)
        try:
            with signals_handled_by(raise_interrupt), locked(folder, run_id=run_id):
                end_leftovers(folder)  # of an earlier attempt whose process was killed
                check_store(output / "metadata.db")
                with (
                    temporary_folder(folder) as temporary,
                    ForkServerClient(
                        folder, temporary=temporary, warm=warm, is_ours=request.is_workload
                    ) as server,
                ):
                    _run(request, history, record, node_id, server, display)
        except KeyboardInterrupt:  # before the node began, after it was done, or the second signal
            if not record.node(node_id).is_done:
                return record, INTERRUPTED
    return record, _code(record.node(node_id))


def _run(
    request: Request,
    history: SharedHistory,
    record: RunRecord,
    node_id: str,
    server: ForkServerClient,
    display: RunDisplay,
) -> None:
    tick = functools.partial(display.waiting, record, "importing TFX")
    folder = record.folder
    server.begin_compiling(request.order(run_id=record.run_id, folder=folder))
    key = graph_key(request)
    graph = keep_graph(request, history, server.compiled(tick=tick), key=key)
    prints = read_fingerprints(folder) or {}
    needed = graph.upstream_of([node_id])
    if absent := needed - prints.keys():
        path = folder / "fingerprints.json"
        raise DocumentError(f"{path} lacks {', '.join(sorted(absent))}.", hint="start a new run")
    record.nodes = [node for node in record.nodes if node.id in needed]
    before = [node for node in record.nodes if node.id != node_id]
    entry = record.node(node_id)
    is_first_try = entry.started_s is None
    decisions = {node.id: _past(node, history, is_new=is_first_try) for node in before}
    for node in before:
        if node.state not in ("complete", "cached") and not decisions[node.id].is_unmet:
            raise PipelineError(
                f"{node_id} cannot run: {node.id} is not done in run {record.run_id}, but {node.state}.",
                hint=_of_outdated_dag(node, record)
                or command("step", "node", record.run_id, node.id, output=request.output),
            )
    if entry.state != "waiting":
        entry.why = "taken again"
    decisions[node_id] = Decision(node_id, "run", entry.why, is_forced=request.no_cache)
    entry.state, entry.error, entry.is_stop = "waiting", None, False
    own = replace(graph[node_id], retries=0)  # the other program retries
    nodes = tuple(own if node.id == node_id else node for node in graph.nodes if node.id in needed)
    plan = Plan(graph, prints, decisions, record.baseline, record.reference)
    journal = Journal(record, history, _began(record))
    changes = functools.partial(changes_since, request, plan, history)
    with states_of_step(
        history.output, key=prints[node_id].key, node_id=node_id, run_id=record.run_id
    ) as states:
        Engine(
            graph=Graph(graph.name, nodes),
            launcher=server,
            results=CachedResults(journal, plan, changes, states),
            journal=journal,
            display=display,
            jobs=1,
        ).run()


def _of_outdated_dag(node: NodeRecord, record: RunRecord) -> str:
    """Return what to do about a node that Airflow has passed over; empty if it has not."""
    if not record.airflow or node.state != "waiting":
        return ""
    origin = record.target.origin
    profile = ("--profile", origin.profile) if origin and origin.profile else ()
    again = command("airflow", record.workload, *profile, program=CLOUD)
    return f"if the DAG has no task {node.id}, the workload file has changed since; write it anew: {again}"


@_tried_again
def finish(
    run_id: str, *, output: Path, display: RunDisplay, listeners: Sequence[Listener] = ()
) -> RunRecord:
    """Close a run: record its outcome and how it ended. A later step opens it again.

    Steps that are at work are waited for: each would write that the run goes on once it ends.

    Raises:
        UsageError: there is no such run.
        PipelineError: a step does not end, or another process is at work in the folder.
        LateInterrupt: as `close`.
    """
    history = SharedHistory(output)
    begun = _of_steps(history, run_id)
    run_id = begun.run_id
    for node in begun.nodes:
        step = _step_path(begun.folder, node.id)
        if not node.is_done and step.is_dir():
            with locked(step, run_id=run_id, what=f"{node.id} of run {run_id}", wait_s=_END_WAIT_S):
                pass  # it has ended
    with locked(output, run_id=run_id, shared=True), history.alone(run_id):
        record = _of_steps(history, run_id)
        for node in record.nodes:
            if node.state == "running":
                node.state, node.error = "failed", _LOST
        if graph := _graph_of(history.folder(run_id)):  # without a graph, no node had to run
            _skip_rest(record, graph, history)
            discard_results_behind_stopped_gates(record, graph)
        for node in record.nodes:
            if node.state == "waiting":  # of a run whose `begin` was killed, and so left no graph
                node.state, node.why = "skipped", _NOT_TAKEN
        has_failed = any(node.state == "failed" for node in record.nodes)
        is_left_out = not record.nodes or any(node.why == _NOT_TAKEN for node in record.nodes)
        journal = Journal(record, History(output), _began(record))
        close(journal, Ending(interrupted=is_left_out and not has_failed), display, listeners)
    return record


def _graph_of(folder: Path) -> Graph | None:
    path = folder / _GRAPH
    try:
        return read_document(Graph, path)
    except FileNotFoundError:
        return None
    except DocumentError as error:
        raise DocumentError(error.message, hint="start a new run") from error


def _skip_rest(record: RunRecord, graph: Graph, history: History) -> None:
    """Record why nodes did not run; the first cause is passed on."""
    unmet = {node.id for node in record.nodes if _is_unmet(node, history)}
    for node in graph.nodes:
        entry = record.node(node.id)
        if entry.state == "waiting" or entry.why in ("interrupted", _NOT_TAKEN):
            causes = (passed_on(up, unmet) for up in map(record.node, node.upstream))
            known = (why for why in causes if why not in ("", _NOT_TAKEN))
            entry.state, entry.why = "skipped", next(known, _NOT_TAKEN)


def _of_steps(history: History, run_id: str) -> RunRecord:
    if not run_id:
        raise UsageError("There is no run to continue: its `step begin` did not succeed.")
    record = history.find(run_id)
    if not record.in_steps:
        raise UsageError(
            f"Run {record.run_id} is not run step by step.",
            hint=f"{command('step', 'begin', output=history.output)}   # begins one that is",
        )
    return record


def _entry(record: RunRecord, node_id: str) -> NodeRecord:
    try:
        return record.node(node_id)
    except KeyError:
        if not record.nodes:
            raise UsageError(
                f"Run {record.run_id} has no plan: its `step begin` did not succeed.",
                hint=rerun_command(record),
            ) from None
        ids = ", ".join(node.id for node in record.nodes)
        raise UsageError(f"Run {record.run_id} has no node {node_id!r}.", hint=f"nodes: {ids}") from None


def _step_folder(run_folder: Path, name: str) -> Path:
    """Return the folder of one step, which holds its log.

    Its path marks the step's processes, so that ending one step does not end those of another.
    """
    folder = _step_path(run_folder, name)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    return folder


def _step_path(run_folder: Path, name: str) -> Path:
    return run_folder / "steps" / file_name(name)


def _past(node: NodeRecord, history: History, *, is_new: bool) -> Decision:
    """Return the decision for a node upstream of the one that runs.

    Args:
        is_new: whether the node that runs begins for the first time. Only then may state that an earlier
            run left for it have been made from other upstream results than this run's.
    """
    if node.state == "skipped":
        return Decision(node.id, "skip", node.why, is_unmet=_is_unmet(node, history))
    return Decision(node.id, "run" if is_new and node.state == "complete" else "reuse", node.why)


def _is_unmet(node: NodeRecord, history: History) -> bool:
    """Return True if a skipped node was left out because a condition was not met."""
    kept = history.recall(node.key)
    return bool(kept and kept.get("unmet"))


def _began(record: RunRecord) -> float:
    """Return when the run began, in seconds of `time.monotonic()`, even if another process began it."""
    elapsed = datetime.now(UTC) - datetime.fromisoformat(record.started_at)
    return time.monotonic() - elapsed.total_seconds()


def _code(node: NodeRecord) -> int:
    if node.state == "failed":
        return GATE_STOPPED if node.is_stop else FAILED
    return INTERRUPTED if node.why == "interrupted" else DONE
