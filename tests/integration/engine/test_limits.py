"""Retries, time limits, stopped processes, and the end of a group."""

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from slipway.pipeline.engine import attempt
from slipway.pipeline.engine.attempt import Attempt
from slipway.pipeline.engine.local_run import execute
from slipway.pipeline.engine.processes.os_processes import children
from slipway.pipeline.plan.run_request import pipeline_request
from slipway.pipeline.runs.run_target import NodeLimits

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_engine")]


@pytest.fixture
def quick(monkeypatch):
    """A shorter limit of a stopped process than people get."""
    monkeypatch.setattr(attempt, "STOPPED_LIMIT_S", 1.5)


HANG_S, DEAF_S, DEAF_GRACE_S = 4.0, 6.0, 3.0


@pytest.fixture
def limits_wait(in_process, monkeypatch):
    """No limit is looked at before its node is where it stays, and only the deaf one's grace ends.

    How long a node takes to get there, or to save what it has, is a matter of how busy the machine is.
    """
    check, signs = Attempt.check, {HANG_S: "hangs", DEAF_S: "deaf"}

    def checked(self, now, *, limit_s, is_stopped):
        monkeypatch.setattr(attempt, "GRACE_S", DEAF_GRACE_S if limit_s == DEAF_S else 3600.0)
        if limit_s is not None and not (in_process.folder / signs[limit_s]).exists():
            limit_s = None
        return check(self, now, limit_s=limit_s, is_stopped=is_stopped)

    monkeypatch.setattr(Attempt, "check", checked)


def test_limits_and_retries(in_process, watcher, quick, limits_wait):
    woken = []

    def wake(node):
        if (node.id, node.state, node.attempts) == ("Stop", "running", 2):
            # Its first process, which was stopped: nobody is there to be woken any more.
            first = int(in_process.lines("attempts-stop")[0])
            with pytest.raises(ProcessLookupError):
                os.kill(first, signal.SIGCONT)
            woken.append(first)

    watcher.on_change = wake
    request = pipeline_request(
        "toy_pipeline:limits", parameters={}, output=in_process.output, beam_args=[], jobs=5
    )
    limits = {"Hang": NodeLimits(timeout_s=HANG_S), "KilledOnce": NodeLimits(retries=1, backoff_s=0.1)}
    record = execute(replace(request, nodes=limits), display=watcher)
    states = {node.id: (node.state, node.attempts) for node in record.nodes}
    assert states == {
        "Once": ("complete", 2),
        "KilledOnce": ("complete", 2),
        "Deaf": ("failed", 1),
        "Stop": ("failed", 2),
        "Hang": ("failed", 1),
    }
    errors = {node.id: node.error["message"] for node in record.nodes if node.error}
    assert errors == {
        "Deaf": "exceeded its time limit of 6 s",
        "Stop": "was stopped (SIGSTOP) for 1.5 s and not continued",
        "Hang": "exceeded its time limit of 4 s",
    }
    # A retry starts from nothing: what the first attempt left half done is gone.
    for node_id in ("Once", "KilledOnce"):
        [artifact] = record.node(node_id).outputs["made"]
        assert [path.name for path in Path(artifact["uri"]).iterdir()] == ["data"]
    assert len(woken) == 1
    assert in_process.lines("woken") == []
    # The child of the node that hung was told to end, and had the time to save.
    assert in_process.lines("saved") == ["saved"]
    assert record.node("Deaf").wall_s >= DEAF_S + DEAF_GRACE_S
    assert in_process.left() == []


def fork_server(toy) -> int:
    """The process id of the fork server of the run: the warm process has forked no other."""
    [pid] = children(toy.warm.pid)
    return pid


def test_a_stopped_fork_server_is_noticed(in_process, watcher, quick):
    def stop() -> None:
        in_process.begins("hangs")
        os.kill(fork_server(in_process), signal.SIGSTOP)

    request = pipeline_request("toy_pipeline:hang", parameters={}, output=in_process.output, beam_args=[])
    stopper = threading.Thread(target=stop)
    stopper.start()
    record = execute(request, display=watcher)
    stopper.join()
    assert (record.state, record.node("Make").state, record.node("Push").state) == (
        "failed", "complete", "skipped",
    )  # fmt: skip
    assert record.node("Hang").error["message"] == (
        "The process that starts the nodes was stopped (SIGSTOP) for 1.5 s and not continued."
    )
    assert in_process.left() == []


def test_a_node_that_dies_before_its_first_sign_of_life_fails_and_can_be_gone_on_with(in_process, watcher):
    killed, is_asked_for = [], threading.Event()

    def kill_newborns() -> None:
        """Kills the first process that the fork server forks for a node, as soon as it can be seen."""
        is_asked_for.wait(60)
        until = time.monotonic() + 60
        while not killed and time.monotonic() < until:
            for pid in children(fork_server(in_process)):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    # Called just before the fork server is asked for the process.
    watcher.on_change = lambda node: node.state == "running" and is_asked_for.set()
    request = pipeline_request("toy_pipeline:one", parameters={}, output=in_process.output, beam_args=[])
    killer = threading.Thread(target=kill_newborns)
    killer.start()
    record = execute(request, display=watcher)
    killer.join()
    assert len(killed) == 1
    assert record.node("Make").state == "failed"
    assert record.node("Make").error["message"].startswith("killed (SIGKILL")
    assert in_process.lines("made") == [], "it has done nothing"
    assert execute(request, display=watcher, resumed=record).state == "complete"
    assert in_process.lines("made") == ["a 1"]


def test_fail_fast_ends_the_nodes_beside_a_failure(toy):
    failed = toy.run("fail_fast", "--jobs", "2", "--fail-fast")
    assert failed.returncode == 1
    assert toy.node("Raise").state == "failed"
    assert (toy.node("Hang").state, toy.node("Hang").why) == (
        "skipped",
        "ended because Raise failed (--fail-fast)",
    )
    assert "  Hang:" not in failed.stderr
