"""A local run from start to end: lock, plan, run, outcome. Used by the command line and notebooks."""

import contextlib
import functools
import os
import time
from collections.abc import Callable, Sequence

from slipway.components.serving_check.clean_process import CLIENT
from slipway.pipeline.engine.concurrent_runs import Beside, Work, at_work
from slipway.pipeline.engine.docker import check_docker
from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.killed_run import last_attempt, take_up
from slipway.pipeline.engine.plan_without_run import check_nodes
from slipway.pipeline.engine.processes.client import ForkServerClient
from slipway.pipeline.engine.processes.default_jobs import default_jobs
from slipway.pipeline.engine.processes.temporary import temporary_folder
from slipway.pipeline.engine.processes.warm import WarmProcess
from slipway.pipeline.engine.result_store import CachedResults
from slipway.pipeline.engine.run_end import Ending, Listener, closed_at_end
from slipway.pipeline.engine.scheduler import Engine, Hopeless
from slipway.pipeline.engine.signal_handlers import Interruptions
from slipway.pipeline.errors import InUseError
from slipway.pipeline.exit_codes import FAILED
from slipway.pipeline.plan.make_plan import (
    Plan,
    changes_since,
    graph_key,
    is_fingerprint_of,
    keep_graph,
    known_graph,
    make_plan,
)
from slipway.pipeline.plan.run_request import TRAINING_NODES, Request
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import check_store
from slipway.pipeline.runs.outcome import complete_outcome
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.run_target import IR_NAME
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.screen.wording import DONE_BEFORE
from slipway.pipeline.terminal.invocation import command

_SERVING_CHECK = "ServingCheck"
# Number of earlier runs to search for a node's duration; a node in none of them gets no estimate.
_RUNS_FOR_EXPECTATION = 50


def execute(
    request: Request,
    *,
    display: RunDisplay,
    resumed: RunRecord | None = None,
    warm: WarmProcess | None = None,
    listeners: Sequence[Listener] = (),
    hopeless: Hopeless = lambda _node: "",
    beside: Beside | None = None,
) -> RunRecord:
    """Run a pipeline, or continue a run.

    Args:
        display: receives the run's events from start to end; the caller closes it.
        resumed: the record of a run that did not complete; its finished nodes are kept.
        warm: the process to fork from; None imports TFX in a new process.
        listeners: called when the run has ended.
        hopeless: says which running nodes to end early; see `Engine`.
        beside: the runs side by side with this one, from `concurrent_runs.side_by_side`, which holds the lock
            of the output folder; None: there is no other.

    Returns:
        The finished run's record, as `run.json` holds it.

    Raises:
        UsageError: the request is invalid, or another process has continued the run; nothing was run.
        LateInterrupt: there was a signal when all nodes were over.
        PipelineError: the engine itself failed, or the machine ran out of disk space or memory.
    """
    began = time.monotonic()
    history = History(request.output)
    check_nodes(request, history)
    run_id = resumed.run_id if resumed else history.new_run_id()
    if beside:
        beside.begin()
    with contextlib.nullcontext() if beside else at_work(request.output, request.workload, run_id=run_id):
        if resumed:
            _require_as_read(resumed, history)
        try:
            record = (
                _continued(resumed, request)
                if resumed
                else history.new_run(request.workload, request.recorded, run_id=run_id)
            )
            record.overrides = dict(request.overrides)
            if request.ir is not None:
                (record.folder / IR_NAME).write_bytes(request.ir)
            history.save(record)
        except OSError:
            _tell_that_none_began(request, run_id, listeners)
            raise
        display.begins(record)
        journal = Journal(record, history, began)
        with closed_at_end(journal, display, listeners) as end:
            try:
                _run(request, journal, display, warm, hopeless, beside, end)
            finally:
                if beside:
                    beside.end(record.run_id)
    return record


def _tell_that_none_began(request: Request, run_id: str, listeners: Sequence[Listener]) -> None:
    """Call the listeners for a run that could not be recorded: a full disk keeps no notification back."""
    record = RunRecord(run_id, request.workload, target=request.recorded, output=request.output)
    record.state, record.exit_code = "failed", FAILED
    for listener in listeners:
        listener(record)


def _run(
    request: Request,
    journal: Journal,
    display: RunDisplay,
    warm: WarmProcess | None,
    hopeless: Hopeless,
    beside: Beside | None,
    end: Ending,
) -> None:
    """Plan and run; note in `end` how that ended, before anything is cleaned up."""

    def alive() -> None:
        journal.note_alive()
        if beside:
            beside.release(journal.record)

    if beside:
        beside.leave_if_interrupted()  # a sweep may have many runs that need no node, and so do not tick
    known = known_plan(request, journal)
    if is_all_known(known, request, journal, display):
        end.nodes_are_over()
        return
    jobs = request.jobs or default_jobs()
    # With a single job, the machine may have no room for a second process.
    may_start_ahead = jobs > 1
    folder = journal.record.folder
    with (
        temporary_folder(folder) as temporary,
        ForkServerClient(
            folder, temporary=temporary, warm=warm, is_ours=request.is_workload, jobs=request.jobs
        ) as server,
    ):
        # Another core is idle while TFX is imported.
        if may_start_ahead and _will_check_serving(request, journal.history, known):
            server.start_ahead(CLIENT)
        plan = prepare(request, journal, display, server, alive=alive, beside=beside)
        if may_start_ahead and _checks_serving(plan):
            server.start_ahead(CLIENT)
        engine = Engine(
            graph=plan.graph,
            launcher=server,
            results=CachedResults(
                journal, plan, functools.partial(changes_since, request, plan, journal.history)
            ),
            journal=journal,
            display=display,
            jobs=jobs,
            fail_fast=request.fail_fast,
            alive=alive,
            hopeless=hopeless,
            signals=beside.signals if beside else Interruptions(),
        )
        engine.run()
        end.nodes_are_over(interrupted=engine.is_cut_short, pruned=engine.pruned)
        if engine.interrupted and not beside:  # those beside it ask for the signals themselves
            end.signals.note()


def _will_check_serving(request: Request, history: History, known: Plan | None) -> bool:
    """Return True if it is certain, before the pipeline is compiled, that ServingCheck will run."""
    if known is not None:
        return _checks_serving(known)
    return request.checks_serving and next(history.begun_runs(request.workload), None) is None


def _checks_serving(plan: Plan) -> bool:
    return any(
        node.type == _SERVING_CHECK and plan.decisions[node.id].action == "run" for node in plan.graph.nodes
    )


def known_plan(request: Request, journal: Journal) -> Plan | None:
    """Return the plan, if it is known without importing TFX."""
    graph = known_graph(request, journal.history)
    return make_plan(request, journal.history, graph, resumed=_resumed(journal.record)) if graph else None


def is_all_known(plan: Plan | None, request: Request, journal: Journal, display: RunDisplay) -> bool:
    """Return True if no node has to run, as far as is known without TFX, and record the results.

    If nodes have to run, invalid requests are rejected.

    Args:
        plan: the result of `known_plan`.

    Raises:
        UsageError: the Beam runner, the Python that trains, the destination that the model is pushed to, or
            the command to run after that, cannot be used.
    """
    due = {i for i, d in plan.decisions.items() if d.action == "run"} if plan else None
    if plan is None or due:
        request.check_engine()
        if request.trains if due is None else due & TRAINING_NODES:
            request.check_interpreter()
        if due is None or "Pusher" in due:
            request.check_destination()
        return False
    _begin_nodes(journal, plan, display)
    return True


def prepare(
    request: Request,
    journal: Journal,
    display: RunDisplay,
    server: ForkServerClient,
    *,
    alive: Callable[[], None] = lambda: None,
    beside: Beside | None = None,
) -> Plan:
    """Compile and plan the run, and register reused results as its own. The record then holds every node.

    Args:
        alive: called from time to time meanwhile.
        beside: as for `execute`; what the others run is waited for.

    Raises:
        UsageError: the pipeline cannot be compiled, its metadata store is damaged or none, or a node needs
            Docker and there is none.
    """
    record, history = journal.record, journal.history
    folder, resumed = record.folder, _resumed(record)
    attempt = f"{record.run_id}.{record.resumed}" if record.resumed else record.run_id

    def tick() -> None:
        alive()
        if beside:
            beside.leave_if_interrupted()
        display.waiting(record, "importing TFX")

    server.begin_compiling(request.order(run_id=attempt, folder=folder))
    key = graph_key(request)
    graph = keep_graph(request, history, server.compiled(tick=tick), key=key)
    if not request.is_workload and (store := request.store_file(graph.store)) is not None:
        check_store(store)  # of a workload, `at_work` has checked it
    # A run in steps, or beside others, shares the folder with some whose executions may be running.
    are_others_at_work = record.in_steps or (beside is not None and beside.begun > 1)
    server.settle("" if are_others_at_work else str(folder.parent), tick=tick)
    if resumed:
        published = server.published([last_attempt(record)], tick=tick)
        take_up(
            journal,
            published,
            graph,
            lambda node, key: is_fingerprint_of(graph, node.id, key, request, history),
        )
    while True:
        releases = beside.releases if beside else 0
        plan = make_plan(request, history, graph, resumed=resumed)
        if beside is None or beside.claim(record.run_id, _due(plan), releases=releases, tick=tick):
            break
    check_docker((node for node in graph.nodes if plan.decisions[node.id].action == "run"), os.environ)
    _begin_nodes(journal, plan, display)
    # A resolver that found nothing has no execution to reuse.
    sources = {i: d.source for i, d in plan.decisions.items() if d.source is not None}
    reused = {i: source for i, source in sources.items() if source["execution_id"] is not None}
    results = server.reuse(reused, tick=lambda: display.tick(record, {}))
    for node_id in reused.keys() - results.keys():
        entry = record.node(node_id)
        entry.state, entry.why = "waiting", "the metadata store does not know its earlier result"
        _forget_earlier(entry)
    return plan


def _due(plan: Plan) -> set[Work]:
    return {(i, plan.prints[i].key) for i, decision in plan.decisions.items() if decision.action == "run"}


def _resumed(record: RunRecord) -> RunRecord | None:
    return record if record.resumed else None


def _begin_nodes(journal: Journal, plan: Plan, display: RunDisplay) -> None:
    """Record and show what the plan has decided for each node."""
    record, history = journal.record, journal.history
    earlier = {node.id: node for node in record.nodes}
    record.workload, record.nodes = plan.graph.name, []
    record.baseline, record.reference = plan.baseline, plan.reference
    for node in plan.graph.nodes:
        decision = plan.decisions[node.id]
        entry = earlier.get(node.id) or NodeRecord(id=node.id)
        entry.type, entry.why, entry.upstream = node.type, decision.why, list(node.upstream)
        entry.key = plan.prints[node.id].key
        if decision.source is not None:
            own = decision.source["run_id"] == record.run_id
            if not own or entry.error is not None:  # before it was resumed, the run had failed there
                _forget_earlier(entry)
            entry.state = "complete" if own else "cached"
            entry.why = DONE_BEFORE if own else decision.why
            entry.execution_id, entry.outputs = (
                decision.source["execution_id"],
                dict(decision.source["outputs"]),
            )
        else:
            entry.state = "skipped" if decision.action == "skip" else "waiting"
            _forget_earlier(entry)
        record.nodes.append(entry)
    if record.resumed:  # what is kept counts from now on, also if the engine is killed
        complete_outcome(record)
    history.save_fingerprints(record.run_id, plan.prints)
    history.save(record)
    display.planned(record, _expected_s(history, record))


def _forget_earlier(entry: NodeRecord) -> None:
    """Remove what an earlier result, or an attempt before the run was resumed, left in a node's record."""
    entry.attempts, entry.preemptions, entry.error, entry.is_stop = 0, 0, None, False
    entry.execution_id, entry.outputs = None, {}


def _require_as_read(resumed: RunRecord, history: History) -> None:
    """Refuse to continue a run that another process has continued since its record was read.

    Continuing would overwrite that process's work, and give the metadata store the same attempt twice.

    Raises:
        InUseError: another process has; says how the run is now.
    """
    now = history.run(resumed.run_id)
    # A killed run's record says that it is running.
    if now is None or now.resumed != resumed.resumed or now.state not in (resumed.state, "running"):
        state = f"it is {now.state} now" if now else "it is gone"
        raise InUseError(
            f"Run {resumed.run_id} was continued by another process meanwhile: {state}.",
            hint=command("show", resumed.run_id, output=history.output),
        )


def _continued(record: RunRecord, request: Request) -> RunRecord:
    record.resumed += 1
    record.target = request.recorded  # the workload file may have been edited since
    record.state, record.exit_code, record.error = "running", None, None
    return record


def _expected_s(history: History, record: RunRecord) -> dict[str, float]:
    waiting = {node.id for node in record.nodes if node.state == "waiting"}
    expected: dict[str, float] = {}
    for run in history.latest_runs(record.workload, limit=_RUNS_FOR_EXPECTATION):
        if waiting <= expected.keys():
            break
        if run.run_id != record.run_id:
            for node in run.nodes:
                if node.state == "complete":
                    expected.setdefault(node.id, node.wall_s)
    return expected
