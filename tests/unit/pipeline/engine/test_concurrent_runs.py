"""Runs side by side: what one runs, the others wait for."""

import signal
import threading

import pytest

from slipway.pipeline.engine.concurrent_runs import Beside, side_by_side
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.lock import working
from slipway.pipeline.runs.record import NodeRecord, RunRecord

A, B, C = ("Transform", "a"), ("Trainer", "b"), ("Trainer", "c")


def record(*states, run_id="1"):
    nodes = [
        NodeRecord(name, state=state) for name, state in zip(("Transform", "Trainer"), states, strict=True)
    ]
    return RunRecord(run_id, "taxi", nodes=nodes)


def claim(beside, run_id, *wanted, releases=None, tick=lambda: None):
    releases = beside.releases if releases is None else releases
    return beside.claim(run_id, wanted, releases=releases, tick=tick)


def test_runs_of_different_nodes_do_not_wait():
    beside = Beside()
    assert claim(beside, "1", A, B)
    assert claim(beside, "2", C), "another key"
    assert claim(beside, "3")


def test_a_run_waits_until_the_other_has_done_with_all_that_it_wants_and_plans_anew():
    beside, ticks = Beside(), []
    claim(beside, "1", A, B)

    def tick():
        ticks.append(1)
        beside.release(record("complete", "running"))

    assert not claim(beside, "2", A, C, tick=tick)
    assert ticks
    assert claim(beside, "2", C), "what is cached by now is not wanted any more"
    assert not beside._is_claimed([A])


def test_a_run_that_waits_claims_nothing():
    beside = Beside()
    claim(beside, "1", A, B)
    others = []

    def tick():
        others.append(claim(beside, "3", C))
        beside.end("1")
        beside.end("3")

    assert not claim(beside, "2", A, C, tick=tick)
    assert others == [True]


@pytest.mark.parametrize("state", ["complete", "cached", "failed", "skipped"])
def test_a_node_that_does_not_run_any_more_is_free(state):
    beside = Beside()
    claim(beside, "1", A, B)
    beside.release(record(state, "waiting"))
    assert claim(beside, "2", A)
    assert beside._is_claimed([B])


@pytest.mark.parametrize(
    "give_up", [lambda beside: beside.release(record("complete", "running")), lambda beside: beside.end("1")]
)
def test_a_run_plans_anew_if_another_has_done_with_a_node_meanwhile(give_up):
    beside = Beside()
    claim(beside, "1", A, B)
    planned_at = beside.releases
    give_up(beside)
    assert not claim(beside, "2", A, releases=planned_at), "the plan may not know of the result"
    planned_at = beside.releases
    beside.release(record("complete", "running"))
    beside.end("3")
    assert claim(beside, "2", A, releases=planned_at), "nothing was given up"


def test_a_run_that_ends_wakes_who_waits():
    beside, found = Beside(), []
    claim(beside, "1", A)
    waits = threading.Thread(target=lambda: found.append(claim(beside, "2", A)))
    waits.start()
    beside.end("1")
    waits.join(60)
    assert found in ([True], [False]), "depending on who came first"


def test_an_interrupt_ends_a_run_that_waits():
    beside = Beside()
    claim(beside, "1", A)
    beside.interrupt(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        claim(beside, "2", A, tick=beside.leave_if_interrupted)
    assert beside.signals.count == 1


def test_signals_are_counted_and_the_folder_is_locked(tmp_path):
    with side_by_side(tmp_path, "taxi", run_id="sweep 1") as beside:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert beside.signals.count == 2
        with (
            pytest.raises(UsageError, match=r"in use by process \d+ \(sweep 1\)"),
            working(tmp_path, "taxi", run_id="2"),
        ):
            pass
    with working(tmp_path, "taxi", run_id="2"):
        pass
