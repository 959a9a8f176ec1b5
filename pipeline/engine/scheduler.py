"""Runs a planned pipeline: starts nodes when they are due, watches them, keeps the record, ends in order.

Imports no TFX: nodes live in processes that the fork server forks; this one stays small and quick to answer.
"""

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from slipway.pipeline.engine.attempt import Attempt
from slipway.pipeline.engine.failure import Failed, describe_exit, failed
from slipway.pipeline.engine.launcher import Exited, Launcher, LauncherLostError, Start, Started
from slipway.pipeline.engine.processes.os_processes import is_stopped
from slipway.pipeline.engine.signal_handlers import answered_by
from slipway.pipeline.engine.transitions import Transition, after_attempt, blocked, due
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.parts import Fingerprint
from slipway.pipeline.plan.decide import Decision
from slipway.pipeline.plan.kept_states import KeptStates, stays
from slipway.pipeline.plan.node_fingerprints import found_key, with_found
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.history import History, result_of
from slipway.pipeline.runs.outcome import withhold
from slipway.pipeline.runs.record import Failure, Files, Made, NodeRecord, RunRecord, file_name
from slipway.pipeline.screen.display import Display

# Seconds between two checks of limits and progress; also the longest delay of a time limit or Ctrl-C.
_TICK_S = 0.5
# Nodes that are due at once start this far apart: ML Metadata waits for seconds where it finds its SQLite
# file locked, and eight that begin together, and so end together, find it so.
_STAGGER_S = 0.1


@dataclass
class Engine:
    """One run in progress.

    Args:
        record: the run's record, with a node record for each node of the graph.
        graph: the compiled pipeline, retries and limits filled in.
        decisions: what the plan decided for each node.
        prints: the nodes' fingerprints.
        launcher: starts the nodes.
        history: where the record is kept.
        display: receives the reports.
        jobs: how many nodes may run at once, >= 1.
        fail_fast: whether a failure ends the nodes that run beside it.
        still_current: for a node that has just ended, whether its code and data are still those of its
            fingerprint; where not, neither its result nor its state is kept. None: they cannot have changed.
        began: when the run began, in seconds of `time.monotonic()`.
        alive: called twice a second while the run lasts.
    """

    record: RunRecord
    graph: Graph
    decisions: Mapping[str, Decision]
    prints: Mapping[str, Fingerprint]
    launcher: Launcher
    history: History
    display: Display
    jobs: int
    fail_fast: bool = False
    still_current: Callable[[str], bool] | None = None
    began: float = field(default_factory=time.monotonic)
    alive: Callable[[], None] = lambda: None
    interrupted: bool = False
    _signals: int = 0
    _running: dict[str, Attempt] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _unmet: set[str] = field(default_factory=set)
    _last_start: float = 0.0
    _has_due: bool = False

    def __post_init__(self) -> None:
        self._unmet = {node_id for node_id, decision in self.decisions.items() if decision.is_unmet}
        self._states = KeptStates(self.history.output)

    def run(self) -> None:
        """Runs every node that the plan decided to run; returns when nothing runs and nothing is due.

        Raises:
            PipelineError: the record could not be written; nothing is left running.
        """
        for entry in self.record.nodes:
            was_begun = entry.started_s is not None
            if not stays(entry.id, self.graph, self.decisions, was_begun=was_begun):
                self._forget_state(entry.id)
        try:
            with answered_by(self._on_signal):
                self._loop()
        except KeyboardInterrupt:  # the second Ctrl-C: no more grace for anyone
            self.interrupted = True
            self.launcher.kill()
        except LauncherLostError as error:
            self._lose(error)
        why = next((f"{n.id} failed" for n in self.record.nodes if n.state == "failed"), "the run ended")
        for node in self.record.nodes:
            if node.state in ("waiting", "running"):
                self._skip(node, "interrupted" if self.interrupted else why)
        for entry in withhold(self.record, self.graph):
            self._changed(entry)

    def _on_signal(self, *_: object) -> None:
        # Only counts: the loop may be in the middle of a message or of a file.
        self._signals += 1
        if self._signals > 1:
            raise KeyboardInterrupt

    def _loop(self) -> None:
        while True:
            if self._signals and not self.interrupted:
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
            self.display.tick(self.record, self._progress())

    def _interrupt(self) -> None:
        self.interrupted = True
        self._not_before.clear()
        for node_id in self._running:
            self._end(node_id, "interrupted")

    def _lose(self, error: LauncherLostError) -> None:
        # Nodes that wait for a retry have nobody left to start them.
        for node_id in (*self._running, *self._not_before):
            entry = self.record.node(node_id)
            entry.state, entry.error = "failed", Failure(message=error.message, hint=error.hint, where="")
            self._changed(entry)

    def _wait_s(self) -> float:
        due = [at - time.monotonic() for at in self._not_before.values()]
        return max(0.0, min([_STAGGER_S if self._has_due else _TICK_S, *due]))

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
            self._remember(entry, unmet=becomes.why)

    def _skip(self, entry: NodeRecord, why: str) -> None:
        entry.state, entry.why = "skipped", why
        self._changed(entry)

    def _start(self, entry: NodeRecord) -> None:
        self._not_before.pop(entry.id, None)
        entry.attempts += 1
        entry.state, entry.error, entry.is_stop = "running", None, False
        name = file_name(entry.id)
        entry.log = f"logs/{name}.log"
        entry.started_s = round(time.monotonic() - self.began, 3)
        self._running[entry.id] = Attempt(began=time.monotonic())
        folder = self.history.folder(self.record.run_id)
        progress, left = folder / "progress" / name, folder / "left" / name
        with self._keeps_record():
            progress.parent.mkdir(exist_ok=True)
            progress.unlink(missing_ok=True)
            if left.exists():
                shutil.rmtree(left)
        # Before it starts: if the run is killed now, the record shows that this node may have done something.
        self._changed(entry)
        self.launcher.start(
            Start(
                node=entry.id,
                attempt=entry.attempts,
                log=str(folder / entry.log),
                progress=str(progress),
                left=str(left),
                state=str(self._states.folder(self.prints[entry.id].key, entry.id)),
            )
        )

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
            self._fail(entry, result, becomes)
        elif result["state"] != "skipped":
            self._complete(entry, result)
        self._changed(entry)

    def _complete(self, entry: NodeRecord, result: Made) -> None:
        entry.execution_id, entry.outputs = result["execution_id"], result["outputs"]
        node = self.graph[entry.id]
        if node.found is not None:
            self._note_found(entry.id, found_key(result["outputs"]))
        entry.key = self.prints[entry.id].key
        # Not for fingerprints that cannot be foreseen: nobody will ask for them again.
        if entry.execution_id is not None or node.finds_reference or node.found is not None:
            self._remember(entry, files=result.get("files"))
        self._forget_state(entry.id)

    def _fail(self, entry: NodeRecord, result: Failed, becomes: Transition) -> None:
        if not self._is_current(entry.id):
            self._forget_state(entry.id)  # state from other code, or other data
        if becomes.is_stop:
            with self._keeps_record():
                self.history.keep_verdict(self.record.run_id, entry.id, result["verdict"])
        if becomes.retry is not None:
            entry.preemptions += becomes.retry.is_preemption
            self._not_before[entry.id] = time.monotonic() + becomes.retry.wait_s
        elif becomes.state == "failed" and self.fail_fast:
            for other in self._running:
                self._end(other, f"ended because {entry.id} failed (--fail-fast)")

    def _note_found(self, node_id: str, found: str) -> None:
        """Takes over a resolver's result, if a node of this run changed what it finds."""
        if self.graph[node_id].found == found:
            return
        self.prints = with_found(self.prints, node_id, found)
        for node in self.record.nodes:
            if node.state == "waiting":
                node.key = self.prints[node.id].key
        with self._keeps_record():
            self.history.save_fingerprints(self.record.run_id, self.prints)

    def _is_current(self, node_id: str) -> bool:
        return self.still_current is None or self.still_current(node_id)

    def _forget_state(self, node_id: str) -> None:
        self._states.forget(self.prints[node_id].key, node_id)

    def _remember(self, entry: NodeRecord, *, files: Files | None = None, unmet: str = "") -> None:
        if not self._is_current(entry.id):
            entry.why += "; not cached: its code or data changed while it ran"
            return
        with self._keeps_record():
            self.history.remember(
                self.prints[entry.id].key,
                result_of(entry, self.record.run_id, files=files or {}, unmet=unmet),
            )

    def _watch(self) -> None:
        now = time.monotonic()
        for node_id, attempt in self._running.items():
            stopped = attempt.pid != 0 and is_stopped(attempt.pid)
            signum = attempt.check(now, limit_s=self.graph[node_id].timeout_s, is_stopped=stopped)
            if signum is not None:
                self.launcher.signal(node_id, signum)

    def _end(self, node_id: str, reason: str) -> None:
        self._running[node_id].end(time.monotonic(), reason, is_at_fault=False)
        self.launcher.signal(node_id, signal.SIGTERM)

    def _progress(self) -> dict[str, str]:
        told = {}
        folder = self.history.folder(self.record.run_id) / "progress"
        for node_id in self._running:
            try:
                line = json.loads((folder / file_name(node_id)).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue  # it has reported nothing yet
            share = f"{line['done']:,} of {line['total']:,}" if line.get("total") else ""
            told[node_id] = ", ".join(filter(None, [share, line.get("text", "")]))
        return told

    def _changed(self, entry: NodeRecord) -> None:
        self.record.wall_s = round(time.monotonic() - self.began, 3)
        event = {"node": entry.id, "state": entry.state, "attempt": entry.attempts, "why": entry.why}
        with self._keeps_record():
            self.history.save(self.record)
            self.history.append_event(self.record.run_id, event)
        self.display.changed(self.record, entry)

    @contextmanager
    def _keeps_record(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PipelineError(
                f"{self.history.folder(self.record.run_id)} cannot be written: {error.strerror}.",
                hint="make room on the disk first",
            ) from error
