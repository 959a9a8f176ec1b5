"""Retries, time limits, stopped processes, and the end of a group."""

import os
import signal
from pathlib import Path

import pytest

from pipeline.config import NodeConfig
from pipeline.local import attempt
from pipeline.local.execution import execute
from pipeline.local.request import pipeline_request

pytestmark = pytest.mark.slow


@pytest.fixture
def quick(monkeypatch):
    """Shorter limits than people get."""
    monkeypatch.setattr(attempt, "STOPPED_LIMIT_S", 1.5)
    monkeypatch.setattr(attempt, "GRACE_S", 3.0)


def test_limits_and_retries(in_process, watcher, quick):
    woken = []

    def wake(node):
        if (node.id, node.state, node.attempts) == ("Stop", "running", 2):
            # Its first process, which was stopped: nobody is there to be woken any more.
            first = int(in_process.lines("attempts-stop")[0])
            with pytest.raises(ProcessLookupError):
                os.kill(first, signal.SIGCONT)
            woken.append(first)

    watcher.on_change = wake
    request = pipeline_request("toy_pipeline:limits", sets=[], output=in_process.output, beam_args=[], jobs=5)
    limits = {"Hang": NodeConfig(timeout_s=4.0), "KilledOnce": NodeConfig(retries=1, backoff_s=0.1)}
    record = execute(
        type(request).from_json(
            {**request.to_json(), "nodes": {k: v.model_dump() for k, v in limits.items()}}
        ),
        display=watcher,
    )
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
    assert record.node("Deaf").wall_s >= 6.0 + attempt.GRACE_S
    assert in_process.left() == []


def test_fail_fast_ends_the_nodes_beside_a_failure(toy):
    failed = toy.run("fail_fast", "--jobs", "2", "--fail-fast")
    assert failed.returncode == 1
    assert toy.node("Raise").state == "failed"
    assert (toy.node("Hang").state, toy.node("Hang").why) == (
        "skipped",
        "ended because Raise failed (--fail-fast)",
    )
    assert "  Hang:" not in failed.stderr
