"""Runs a planned pipeline: starts nodes when they are due, watches them, keeps the record, ends in order.

Imports no TFX: nodes live in processes that the fork server forks; this one stays small and quick to answer.
"""

import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pipeline.fingerprint import Fingerprint
from pipeline.local.failure import describe_exit
from pipeline.local.graph import Graph, Node, ready
from pipeline.local.history import History
from pipeline.local.plan import Decision
from pipeline.local.processes import is_stopped
from pipeline.local.record import NodeRecord, RunRecord
from pipeline.local.server import Server

# Seconds between two looks at limits and progress; also how late a time limit can strike.
_TICK_S = 0.5
# A node has this long between SIGTERM and SIGKILL, to save what it can.
_GRACE_S = 10.0
# A process that someone stopped (SIGSTOP, ^Z) and nobody continued within this time counts as hung.
_STOPPED_LIMIT_S = 30.0
# Backoff doubles with each retry up to this.
_MAX_BACKOFF_S = 600.0


class Display(Protocol):
    """What the engine tells while it works."""

    def changed(self, record: RunRecord, node: NodeRecord) -> None:
        """A node went to another state."""

    def tick(self, record: RunRecord, progress: Mapping[str, str]) -> None:
        """Time passed; `progress` holds a few words for each running node that told some."""


@dataclass
class _Attempt:
    """A node's process: its id, when it began, and why it was told to end."""

    pid: int
    began: float
    stopped_since: float | None = None
    told_to_end: float | None = None
    reason: str = ""


@dataclass
class Engine:
    """One run in progress.

    Args:
        record: the run's record, with a node record for each node of the graph.
        graph: the compiled pipeline, retries and limits filled in.
        decisions: what the plan decided for each node.
        prints: the nodes' fingerprints.
        server: the fork server, which has compiled the pipeline.
        history: where the record is kept.
        display: gets told.
        jobs: how many nodes may run at once, >= 1.
        fail_fast: whether a failure ends the nodes that run beside it.
    """

    record: RunRecord
    graph: Graph
    decisions: Mapping[str, Decision]
    prints: Mapping[str, Fingerprint]
    server: Server
    history: History
    display: Display
    jobs: int
    fail_fast: bool = False
    interrupted: bool = False
    _running: dict[str, _Attempt] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Runs every node that the plan decided to run; returns when nothing runs and nothing is due."""
        before = {s: signal.signal(s, self._on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            while True:
                self._start_due()
                if not self._running and not self._not_before:
                    break
                for message in self.server.receive(self._wait_s()):
                    if message["event"] == "started":
                        self._running[message["node"]].pid = message["pid"]
                    elif message["event"] == "exited":
                        self._finish(message)
                self._watch()
                self.display.tick(self.record, self._progress())
        finally:
            for signum, handler in before.items():
                signal.signal(signum, handler)
        for node in self.record.nodes:
            if node.state == "waiting":
                self._skip(node, "the run was interrupted" if self.interrupted else "something upstream failed")

    def _on_signal(self, *_: object) -> None:
        if self.interrupted:
            # The second time is meant: no more grace for anyone.
            self.server.kill()
            raise KeyboardInterrupt
        self.interrupted = True
        self._not_before.clear()
        for node_id in self._running:
            self._tell_to_end(node_id, "interrupted")

    def _wait_s(self) -> float:
        due = [at - time.monotonic() for at in self._not_before.values()]
        return max(0.0, min([_TICK_S, *due]))

    def _waiting(self) -> set[str]:
        now = time.monotonic()
        waiting = {n.id for n in self.record.nodes if n.state == "waiting"}
        return {i for i in waiting if self._not_before.get(i, 0.0) <= now}

    def _start_due(self) -> None:
        if self.interrupted or (self.fail_fast and any(n.state == "failed" for n in self.record.nodes)):
            self._not_before.clear()
            return
        self._skip_blocked()
        done = {n.id for n in self.record.nodes if n.state in ("complete", "cached")}
        for node_id in ready(self.graph, waiting=self._waiting(), done=done):
            if len(self._running) >= self.jobs:
                return
            self._start(self.record.node(node_id))

    def _skip_blocked(self) -> None:
        for node in self.graph.nodes:
            entry = self.record.node(node.id)
            for upstream in (self.record.node(up) for up in node.upstream):
                if entry.state == "waiting" and upstream.state in ("failed", "skipped"):
                    self._not_before.pop(entry.id, None)
                    cause = upstream.id if upstream.state == "failed" else upstream.why.partition(" failed")[0]
                    told = f"{cause} failed" if self._has_failed(cause) else f"{upstream.id} was skipped"
                    self._skip(entry, told)

    def _has_failed(self, node_id: str) -> bool:
        return any(n.id == node_id and n.state == "failed" for n in self.record.nodes)

    def _skip(self, entry: NodeRecord, why: str) -> None:
        entry.state, entry.why = "skipped", why
        self._changed(entry)

    def _start(self, entry: NodeRecord) -> None:
        self._not_before.pop(entry.id, None)
        entry.attempts += 1
        entry.state, entry.error = "running", None
        entry.log = f"logs/{entry.id}.log"
        entry.started_s = time.monotonic() - self._began
        self._running[entry.id] = _Attempt(pid=0, began=time.monotonic())
        folder = self.history.folder(self.record.run_id)
        for kept in ("nodes", "progress"):
            (folder / kept).mkdir(exist_ok=True)
        self.server.send(
            "start",
            node=entry.id,
            attempt=entry.attempts,
            log=str(folder / entry.log),
            result=str(self._result_path(entry)),
            progress=str(folder / "progress" / entry.id),
        )
        self._changed(entry)

    def _result_path(self, entry: NodeRecord) -> Path:
        folder = self.history.folder(self.record.run_id)
        return folder / "nodes" / f"{entry.id}.{self.record.resumed}.{entry.attempts}.json"

    def _finish(self, message: Mapping[str, Any]) -> None:
        entry, node = self.record.node(message["node"]), self.graph[message["node"]]
        attempt = self._running.pop(entry.id)
        entry.wall_s = round(time.monotonic() - attempt.began, 3)
        entry.peak_bytes = max(entry.peak_bytes, message["peak_bytes"])
        result = self._result(entry, message)
        if result["state"] == "complete":
            entry.state, entry.execution_id = "complete", result["execution_id"]
            entry.outputs, entry.key = result["outputs"], self.prints[entry.id].key
            self._remember(entry)
        elif result["state"] == "skipped":
            entry.state, entry.why = "skipped", "its condition was not met"
        else:
            self._fail(entry, node, attempt, result)
        self._changed(entry)

    def _result(self, entry: NodeRecord, message: Mapping[str, Any]) -> dict[str, Any]:
        try:
            text = self._result_path(entry).read_text(encoding="utf-8")
            result: dict[str, Any] = json.loads(text)
        except FileNotFoundError:
            cause = describe_exit(message["code"], peak_bytes=message["peak_bytes"])
            return {"state": "failed", **cause}
        return result

    def _fail(self, entry: NodeRecord, node: Node, attempt: _Attempt, result: Mapping[str, str]) -> None:
        entry.error = {key: result[key] for key in ("message", "hint", "where")}
        if attempt.reason:
            entry.error = {"message": attempt.reason, "hint": "", "where": ""}
        if self.interrupted:
            entry.state, entry.why = "skipped", "interrupted"
        elif entry.attempts <= node.retries:
            wait_s = min(node.backoff_s * 2 ** (entry.attempts - 1), _MAX_BACKOFF_S)
            self._not_before[entry.id] = time.monotonic() + wait_s
            entry.state = "waiting"
            entry.why = f"retry {entry.attempts} of {node.retries} in {wait_s:g} s: {entry.error['message']}"
        else:
            entry.state = "failed"
            if self.fail_fast:
                for other in self._running:
                    self._tell_to_end(other, f"ended because {entry.id} failed (--fail-fast)")

    def _remember(self, entry: NodeRecord) -> None:
        remembered = {
            "node": entry.id,
            "run_id": self.record.run_id,
            "execution_id": entry.execution_id,
            "outputs": entry.outputs,
        }
        self.history.remember(entry.key, remembered)

    def _watch(self) -> None:
        now = time.monotonic()
        for node_id, attempt in self._running.items():
            limit_s = self.graph[node_id].timeout_s
            if attempt.told_to_end is not None:
                if now - attempt.told_to_end > _GRACE_S:
                    self.server.send("signal", node=node_id, signum=int(signal.SIGKILL))
                    attempt.told_to_end = now
            elif limit_s is not None and now - attempt.began > limit_s:
                self._tell_to_end(node_id, f"exceeded its time limit of {limit_s:g} s")
            elif attempt.pid and is_stopped(attempt.pid):
                attempt.stopped_since = attempt.stopped_since or now
                if now - attempt.stopped_since > _STOPPED_LIMIT_S:
                    reason = f"was stopped (SIGSTOP) for {_STOPPED_LIMIT_S:.0f} s and not continued"
                    self._tell_to_end(node_id, reason, signum=signal.SIGKILL)
            else:
                attempt.stopped_since = None

    def _tell_to_end(self, node_id: str, reason: str, signum: int = signal.SIGTERM) -> None:
        attempt = self._running[node_id]
        attempt.reason, attempt.told_to_end = attempt.reason or reason, time.monotonic()
        self.server.send("signal", node=node_id, signum=int(signum))

    def _progress(self) -> dict[str, str]:
        told = {}
        folder = self.history.folder(self.record.run_id) / "progress"
        for node_id in self._running:
            try:
                line = json.loads((folder / node_id).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue  # it has told nothing yet
            share = f"{line['done']:,} of {line['total']:,}" if line.get("total") else ""
            told[node_id] = ", ".join(filter(None, [share, line.get("text", "")]))
        return told

    def _changed(self, entry: NodeRecord) -> None:
        self.record.wall_s = round(time.monotonic() - self._began, 3)
        self.history.save(self.record)
        event = {"node": entry.id, "state": entry.state, "attempt": entry.attempts, "why": entry.why}
        self.history.append_event(self.record.run_id, event)
        self.display.changed(self.record, entry)


def default_jobs(*, node_bytes: int = 2 * 2**30) -> int:
    """How many nodes to run at once: as many as there are cores, and memory for.

    Args:
        node_bytes: what a node is taken to need; the taxi workload's largest holds 1.3 GiB.
    """
    cores = len(os.sched_getaffinity(0))
    free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(cores, free_bytes // node_bytes))
