"""Runs a planned pipeline: starts nodes when they are due, watches them, and shuts down in order.

transitions.py holds the decisions, a launcher starts the nodes, result_store.py keeps their results,
and journal.py records them. Imports no TFX, so that the engine's process stays small and responsive.
"""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from slipway.pipeline.engine.attempt import Attempt
from slipway.pipeline.engine.failure import describe_exit, failed
from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.launcher import Exited, Launcher, LauncherLostError, Started
from slipway.pipeline.engine.processes.os_processes import is_stopped
from slipway.pipeline.engine.result_store import Results
from slipway.pipeline.engine.signal_handlers import Interruptions, signals_handled_by
from slipway.pipeline.engine.transitions import Transition, after_attempt, blocked, due
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.outcome import discard_results_behind_stopped_gates
from slipway.pipeline.runs.record import PRUNED, Failure, NodeRecord, RunRecord
from slipway.pipeline.screen.display import RunDisplay

# Interval of checking limits and progress; also the longest delay until a time limit or Ctrl-C takes effect.
_TICK_S = 0.5
# Delay between starting nodes that are due at the same time. ML Metadata sleeps for seconds if it finds its
# SQLite file locked, which happens when eight nodes start, and hence end, together.
_STAGGER_S = 0.1

Hopeless = Callable[[NodeRecord], str]
"""Says why a running node is not worth finishing; empty if it is."""


@dataclass
class Engine:
    """One run in progress.

    Args:
        graph: the compiled pipeline, with retries and limits filled in.
        journal: records what happens; its record has an entry for each node of the graph, in state
            `waiting` if the node is to run.
        jobs: the number of nodes that may run at once, >= 1.
        fail_fast: whether a failure ends the other running nodes.
        alive: called twice a second while the run lasts.
        hopeless: asked twice a second for each running node why it is not worth finishing; empty if it is.
            Such a node is ended, keeps its state, and leaves out what depends on it.
        signals: counts the user's interruptions: the first ends the nodes, the second kills them.

    Attributes:
        interrupted: whether the user has interrupted the run.
        is_cut_short: whether a node was ended, or left out, by that. A signal may come after the last node's
            result, and then takes nothing back.
    """

    graph: Graph
    launcher: Launcher
    results: Results
    journal: Journal
    display: RunDisplay
    jobs: int
    fail_fast: bool = False
    alive: Callable[[], None] = lambda: None
    hopeless: Hopeless = lambda _node: ""
    interrupted: bool = False
    is_cut_short: bool = False
    signals: Interruptions = field(default_factory=Interruptions)
    _running: dict[str, Attempt] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _unmet: set[str] = field(default_factory=set)
    _hopeless: set[str] = field(default_factory=set)
    _last_start: float = 0.0
    _has_due: bool = False

    @property
    def record(self) -> RunRecord:
        """The run's record."""
        return self.journal.record

    @property
    def pruned(self) -> bool:
        """Whether a node was ended as hopeless; one that was faster than the signal is complete."""
        return any(self.record.node(node_id).state == "skipped" for node_id in self._hopeless)

    def run(self) -> None:
        """Run every node that the plan decided to run; return when nothing runs and nothing is due.

        Raises:
            PipelineError: the record could not be written; no node is left running.
        """
        self._unmet = self.results.begin()
        try:
            with signals_handled_by(self.signals):
                self._loop()
        except KeyboardInterrupt:  # the second Ctrl-C: kill without grace period
            self.interrupted = True
            self.launcher.kill()
        except LauncherLostError as error:
            self._lose(error)
        with signals_handled_by(self.signals.note):
            self._conclude()

    def _conclude(self) -> None:
        why = next((f"{n.id} failed" for n in self.record.nodes if n.state == "failed"), "the run ended")
        for node in self.record.nodes:
            if node.state in ("waiting", "running"):
                self.is_cut_short |= self.interrupted
                self._skip(node, "interrupted" if self.interrupted else why)
        for entry in discard_results_behind_stopped_gates(self.record, self.graph):
            self._changed(entry)

    def _loop(self) -> None:
        while True:
            if self.signals.count > 1:  # counted by the main thread, if this is another
                raise KeyboardInterrupt
            if self.signals.count and not self.interrupted:
                self._interrupt()
            self._start_due()
            if not self._running and not self._not_before:
                return
            for event in self.launcher.receive(self._wait_s()):
                if isinstance(event, Started):
                    self._running[event.node].pid = event.pid
                else:
                    self._finish(event)
            self._watch()
            self.alive()
            self.display.tick(self.record, self.journal.progress(self._running))

    def _interrupt(self) -> None:
        self.interrupted = True
        self._not_before.clear()
        for node_id in self._running:
            self._end(node_id, "interrupted")

    def _lose(self, error: LauncherLostError) -> None:
        # Nodes that wait for a retry fail too: nothing is left to start them.
        for node_id in (*self._running, *self._not_before):
            entry = self.record.node(node_id)
            entry.state, entry.error = "failed", Failure(message=error.message, hint=error.hint, where="")
            self._changed(entry)

    def _wait_s(self) -> float:
        now = time.monotonic()
        # A due node that waits for a free slot begins when another node ends, which is an event.
        due = [at - now for at in self._not_before.values() if at > now]
        return min([_STAGGER_S if self._has_due else _TICK_S, *due])

    def _start_due(self) -> None:
        self._skip_blocked()
        has_failed = any(node.state == "failed" for node in self.record.nodes)
        if self.interrupted or (self.fail_fast and has_failed):
            self._not_before.clear()
            return
        now = time.monotonic()
        found = due(self.graph, self.record, unmet=self._unmet, not_before=self._not_before, now=now)
        free = found[: self.jobs - len(self._running)]
        if free and (not self._running or now - self._last_start >= _STAGGER_S):
            self._start(self.record.node(free.pop(0)))
            self._last_start = now
        self._has_due = bool(free)

    def _skip_blocked(self) -> None:
        for node in self.graph.nodes:
            entry = self.record.node(node.id)
            if entry.state == "waiting":
                becomes = blocked(node, self.graph, self.record, self._unmet)
                if becomes is not None:
                    self._become(entry, becomes)
                    self._changed(entry)

    def _become(self, entry: NodeRecord, becomes: Transition) -> None:
        entry.state, entry.why = becomes.state, becomes.why
        entry.error, entry.is_stop = becomes.error, becomes.is_stop
        if becomes.is_unmet:
            self._unmet.add(entry.id)
            entry.outputs = {}
            self.results.leave_out(entry)

    def _skip(self, entry: NodeRecord, why: str) -> None:
        entry.state, entry.why = "skipped", why
        self._changed(entry)

    def _start(self, entry: NodeRecord) -> None:
        self._not_before.pop(entry.id, None)
        entry.attempts += 1
        entry.state, entry.error, entry.is_stop = "running", None, False
        self._running[entry.id] = Attempt(began=time.monotonic())
        start = self.journal.begin(entry, state=self.results.state_folder(entry.id))
        # Recorded before the start, so that the record of a killed run shows that this node may have begun.
        self._changed(entry)
        self.launcher.start(start)

    def _finish(self, exited: Exited) -> None:
        entry = self.record.node(exited.node)
        attempt = self._running.pop(entry.id)
        entry.wall_s = round(time.monotonic() - attempt.began, 3)
        entry.peak_bytes = max(entry.peak_bytes, exited.peak_bytes)
        result = exited.result or failed(describe_exit(exited.code, peak_bytes=exited.peak_bytes))
        becomes = after_attempt(
            entry, self.graph[entry.id], result, attempt, interrupted=self.interrupted, unmet=self._unmet
        )
        self._become(entry, becomes)
        if result["state"] == "failed":
            self.is_cut_short |= self.interrupted
            self.results.fail(entry)
            if becomes.is_stop:
                self.journal.keep_verdict(entry, result["verdict"])
            self._go_on_after_failure(entry, becomes)
        elif result["state"] != "skipped":
            entry.execution_id, entry.outputs = result["execution_id"], result["outputs"]
            self.results.keep(entry, result.get("files", {}))
        self._changed(entry)

    def _go_on_after_failure(self, entry: NodeRecord, becomes: Transition) -> None:
        if becomes.retry is not None:
            entry.preemptions += becomes.retry.is_preemption
            self._not_before[entry.id] = time.monotonic() + becomes.retry.wait_s
        elif becomes.state == "failed" and self.fail_fast:
            for other in self._running:
                self._end(other, f"ended because {entry.id} failed (--fail-fast)")

    def _watch(self) -> None:
        now = time.monotonic()
        for node_id, attempt in self._running.items():
            if attempt.told_to_end is None and (why := self.hopeless(self.record.node(node_id))):
                self._hopeless.add(node_id)
                self._end(node_id, f"{PRUNED} {why}")
            stopped = attempt.pid != 0 and is_stopped(attempt.pid)
            signum = attempt.check(now, limit_s=self.graph[node_id].timeout_s, is_stopped=stopped)
            if signum is not None:
                self.launcher.signal(node_id, signum)

    def _end(self, node_id: str, reason: str) -> None:
        self._running[node_id].end(time.monotonic(), reason, is_at_fault=False)
        self.launcher.signal(node_id, signal.SIGTERM)

    def _changed(self, entry: NodeRecord) -> None:
        self.journal.changed(entry)
        self.display.changed(self.record, entry)
