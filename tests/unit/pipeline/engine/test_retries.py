"""Which node that failed is tried again, and when."""

import pytest

from slipway.pipeline.engine.retries import backoff_s, next_attempt
from slipway.pipeline.runs.graph import Node
from slipway.pipeline.runs.record import NodeRecord

NODE = Node("Make", "Make", (), retries=2, backoff_s=3.0)


def after(attempts, *, is_stop=False, is_preempted=False, **fields):
    entry = NodeRecord("Make", attempts=attempts, **fields)
    return next_attempt(entry, NODE, message="it broke", is_stop=is_stop, is_preempted=is_preempted)


def test_failed_node_is_tried_again_as_often_as_its_retries_say():
    assert [after(attempts) is not None for attempts in (1, 2, 3)] == [True, True, False]


def test_each_retry_waits_twice_as_long_and_says_why():
    assert [(after(n).wait_s, after(n).why) for n in (1, 2)] == [
        (3.0, "retry 1 of 2 in 3 s: it broke"),
        (6.0, "retry 2 of 2 in 6 s: it broke"),
    ]


def test_gate_that_said_no_is_not_asked_again():
    assert after(1, is_stop=True) is None


def test_node_that_was_ended_from_outside_starts_again_twenty_times_beside_its_retries():
    retry = after(1, is_preempted=True)
    assert (retry.wait_s, retry.why, retry.is_preemption) == (3.0, "starts again: it broke", True)
    assert after(20, is_preempted=True, preemptions=19).is_preemption
    assert after(21, is_preempted=True, preemptions=20).why == "retry 1 of 2 in 3 s: it broke"
    assert after(23, is_preempted=True, preemptions=20) is None


@pytest.mark.parametrize(("attempt", "wait_s"), [(1, 2), (2, 4), (3, 8), (12, 600), (10_000, 600)])
def test_backoff_doubles_up_to_ten_minutes(attempt, wait_s):
    assert backoff_s(2.0, attempts=attempt) == wait_s
