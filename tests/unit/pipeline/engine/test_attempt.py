"""What an attempt is told, at which time."""

import signal

from slipway.pipeline.engine import attempt as attempts
from slipway.pipeline.engine.attempt import Attempt


def test_a_node_within_its_limit_is_left_alone():
    assert Attempt(began=100).check(110, limit_s=10, is_stopped=False) is None


def test_a_node_without_a_limit_may_take_for_ever():
    assert Attempt(began=0).check(1e9, limit_s=None, is_stopped=False) is None


def test_a_node_over_its_limit_is_asked_to_end_once_then_killed_after_the_grace():
    attempt = Attempt(began=0)
    assert attempt.check(11, limit_s=10, is_stopped=False) == signal.SIGTERM
    assert attempt.reason == "exceeded its time limit of 10 s"
    assert attempt.is_at_fault
    assert attempt.check(11 + attempts.GRACE_S, limit_s=10, is_stopped=False) is None
    assert attempt.check(11.1 + attempts.GRACE_S, limit_s=10, is_stopped=False) == signal.SIGKILL


def test_a_kill_is_repeated_while_the_process_is_still_there():
    attempt = Attempt(began=0)
    attempt.end(0, "interrupted")
    told = [attempt.check(second, limit_s=None, is_stopped=False) for second in range(1, 34)]
    assert told.count(signal.SIGKILL) == 3


def test_a_stopped_process_is_killed_after_the_limit(monkeypatch):
    monkeypatch.setattr(attempts, "STOPPED_LIMIT_S", 2.0)
    attempt = Attempt(began=0)
    assert [attempt.check(s, limit_s=None, is_stopped=True) for s in (5, 6, 7)] == [None] * 3
    assert attempt.check(7.5, limit_s=None, is_stopped=True) == signal.SIGKILL
    assert attempt.reason == "was stopped (SIGSTOP) for 2 s and not continued"
    assert attempt.check(8, limit_s=None, is_stopped=True) is None  # once is enough


def test_a_process_that_was_continued_in_time_is_left_alone():
    attempt = Attempt(began=0)
    for second in range(1000):
        assert attempt.check(second, limit_s=None, is_stopped=second % 10 != 0) is None


def test_the_first_reason_to_end_stays():
    attempt = Attempt(began=0)
    attempt.end(1, "ended because A failed", is_at_fault=False)
    attempt.end(2, "interrupted")
    assert (attempt.reason, attempt.is_at_fault) == ("ended because A failed", False)
