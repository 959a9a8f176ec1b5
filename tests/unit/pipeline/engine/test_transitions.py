"""What is due, what cannot run, and what the end of an attempt means: no clock, no file, no process."""

from dataclasses import replace

import pytest

from slipway.pipeline.engine.attempt import Attempt
from slipway.pipeline.engine.retries import Retry
from slipway.pipeline.engine.transitions import Transition, after_attempt, blocked, due, passed_on
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.record import NodeRecord, RunRecord

A, B, C = Node("A", "A", ()), Node("B", "B", ("A",)), Node("C", "C", ("B",))
FAILED = {"state": "failed", "message": "no", "hint": "a hint", "where": "model.py:3"}
ERROR = {"message": "no", "hint": "a hint", "where": "model.py:3"}
DONE = {"state": "complete", "execution_id": 7, "outputs": {}}
EXCLUDED = "excluded (--to)"


def record(*nodes, **states):
    """A run of those nodes; a state with a reason is a pair."""
    entries = []
    for node in nodes:
        state, why = states[node.id] if isinstance(states[node.id], tuple) else (states[node.id], "")
        entries.append(NodeRecord(node.id, node.type, state, why=why))
    return RunRecord("1", "toy", nodes=entries)


def found_due(*nodes, unmet=(), not_before=(), **states):
    run = record(*nodes, **states)
    return due(Graph("toy", nodes), run, unmet=unmet, not_before=dict(not_before), now=10.0)


@pytest.mark.parametrize("done", ["complete", "cached"])
def test_waiting_node_is_due_when_all_before_it_are_done(done):
    other = Node("O", "O", ())
    assert found_due(A, B, C, other, A="waiting", B="waiting", C="waiting", O="waiting") == ["A", "O"]
    assert found_due(A, B, C, other, A=done, B="waiting", C="waiting", O="running") == ["B"]
    assert found_due(A, B, A="failed", B="waiting") == found_due(A, B, A="running", B="waiting") == []


@pytest.mark.parametrize(("at", "is_due"), [(9.9, True), (10.0, True), (10.1, False)])
def test_node_that_failed_is_due_when_its_wait_is_over(at, is_due):
    assert found_due(A, A="waiting", not_before={"A": at}) == ["A"] * is_due


def test_node_that_can_do_without_what_was_left_out_is_due():
    may = replace(B, optional=("A",))
    assert found_due(A, may, unmet={"A"}, A="skipped", B="waiting") == ["B"]
    assert found_due(A, B, unmet={"A"}, A="skipped", B="waiting") == []


@pytest.mark.parametrize(
    ("up", "unmet", "why"),
    [
        (NodeRecord("A", state="failed"), (), "A failed"),
        (NodeRecord("A", state="failed", is_stop=True), (), "A stopped the run"),
        (NodeRecord("A", state="skipped", why="Z failed"), (), "Z failed"),
        (NodeRecord("A", state="skipped", why="Z failed"), ("A",), ""),
        *[(NodeRecord("A", state=s, why="x"), (), "") for s in ("waiting", "running", "complete", "cached")],
    ],
)
def test_first_cause_is_passed_on(up, unmet, why):
    assert passed_on(up, unmet) == why


def found_blocked(node, *nodes, unmet=(), **states):
    graph = Graph("toy", (*nodes, node))
    return blocked(node, graph, record(*graph.nodes, **{node.id: "waiting"}, **states), unmet)


def test_node_is_blocked_by_the_first_before_it_that_keeps_it_from_running():
    two = Node("T", "T", ("A", "S"))
    side = Node("S", "S", ())
    assert found_blocked(two, A, side, A=("skipped", EXCLUDED), S="failed") == Transition("skipped", EXCLUDED)
    assert found_blocked(two, A, side, A="complete", S="failed") == Transition("skipped", "S failed")
    assert found_blocked(two, A, side, A="running", S="waiting") is None


def test_node_after_one_that_was_left_out_is_left_out_unless_it_can_do_without_it():
    left_out = Transition("skipped", "A was skipped", is_unmet=True)
    assert found_blocked(B, A, unmet={"A"}, A=("skipped", "not met")) == left_out
    assert found_blocked(replace(B, optional=("A",)), A, unmet={"A"}, A=("skipped", "not met")) is None


def test_node_is_blocked_by_a_failure_behind_an_earlier_result():
    assert found_blocked(C, A, B, A="failed", B="cached") == Transition("skipped", "A failed")
    assert found_blocked(C, A, B, A=("skipped", EXCLUDED), B="cached") is None


def after(result, *, node=B, attempt=None, interrupted=False, unmet=(), **fields):
    entry = NodeRecord(node.id, state="running", **{"why": "new", "attempts": 1, **fields})
    ended = attempt or Attempt(began=0.0)
    return after_attempt(entry, node, result, ended, interrupted=interrupted, unmet=unmet)


def told(reason, *, is_at_fault):
    attempt = Attempt(began=0.0)
    attempt.end(1.0, reason, is_at_fault=is_at_fault)
    return attempt


def test_node_that_is_done_keeps_its_reason_or_takes_its_own():
    assert after(DONE) == Transition("complete", "new")
    assert after({**DONE, "state": "cached", "why": "equal"}) == Transition("cached", "equal")
    assert after({**DONE, "execution_id": None, "why": "x"}) == Transition("complete", "found nothing")


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"condition.0.operator": '"GREATER"'}, "its condition was not met"),
        ({"conditions": "1"}, "its resolver function leaves it out"),
    ],
)
def test_node_that_its_condition_or_what_finds_its_inputs_leaves_out_says_so(params, why):
    left_out = after({**DONE, "state": "skipped"}, node=replace(A, params=params))
    assert left_out == Transition("skipped", why, is_unmet=True)


def test_failed_node_is_tried_again_then_fails():
    patient = replace(B, retries=1, backoff_s=3.0)
    retry = Retry(3.0, "retry 1 of 1 in 3 s: no")
    assert after(FAILED, node=patient) == Transition("waiting", retry.why, ERROR, retry=retry)
    assert after(FAILED, node=patient, attempts=2) == Transition("failed", "new", ERROR)
    assert after({**FAILED, "start": "A"}).error == {**ERROR, "start": "A"}


def test_gate_that_says_no_stops_the_run_at_once():
    stopped = after({**FAILED, "verdict": {}}, node=replace(B, retries=9))
    assert stopped == Transition("failed", "new", ERROR, is_stop=True)


def test_preempted_node_starts_again_though_it_has_no_retries():
    becomes = after({**FAILED, "is_preempted": True})
    assert (becomes.state, becomes.why) == ("waiting", "starts again: no")
    assert becomes.retry.is_preemption


def test_node_that_was_told_to_end_for_its_own_fault_fails_with_that_reason():
    late = told("exceeded its time limit of 1 s", is_at_fault=True)
    error = {"message": late.reason, "hint": "", "where": ""}
    result = {**FAILED, "is_preempted": True, "verdict": {}, "start": "A"}
    assert after(result, attempt=late) == Transition("failed", "new", error)


def test_node_that_was_ended_for_another_s_sake_did_not_fail():
    ended = told("ended because A failed (--fail-fast)", is_at_fault=False)
    assert after(FAILED, attempt=ended) == Transition("skipped", ended.reason)
    assert after(FAILED, interrupted=True) == Transition("skipped", "interrupted")
    late = told("exceeded its time limit of 1 s", is_at_fault=True)
    assert after(FAILED, attempt=late, interrupted=True) == Transition("skipped", late.reason)
    assert after(DONE, attempt=ended, interrupted=True) == Transition("complete", "new"), "it was quicker"


def test_node_that_lacks_the_input_of_one_left_out_is_left_out_as_well():
    lacking = {**FAILED, "lacks_inputs": True}
    left_out = Transition("skipped", "A was skipped", is_unmet=True)
    assert after(lacking, unmet={"A"}) == left_out
    assert after(lacking).state == after(FAILED, unmet={"A"}).state == "failed"
