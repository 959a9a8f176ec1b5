"""Ctrl-C ends what works in C."""

import signal
import threading
import time

import pytest
from ctrl_c import interrupted

from slipway.components.ingest.query.stoppable import stoppable


def stop():
    raise AssertionError("nothing is to be stopped")


def test_a_result_is_returned_and_an_error_raised():
    assert stoppable(lambda: 7, stop=stop) == 7
    with pytest.raises(ZeroDivisionError):
        stoppable(lambda: 1 / 0, stop=stop)


def test_an_interrupt_stops_the_work_and_is_raised_once_it_has_ended():
    begun, ended, calls = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        return ended.wait(60)

    def stop_at_last():
        calls.append(1)
        if len(calls) == 3:  # it began late, or did not hear
            ended.set()

    with interrupted(0.0, once=begun):
        stoppable(work, stop=stop_at_last)
    assert ended.is_set()
    assert len(calls) >= 3


def test_an_interrupt_that_does_not_wake_the_main_thread_stops_the_work_as_well():
    # As one that comes just before the main thread waits for a lock: Python handles it only after that wait.
    ended = threading.Event()

    def work():
        time.sleep(0.2)  # the main thread waits by now, else this shows nothing
        signal.raise_signal(signal.SIGINT)  # to this thread
        assert ended.wait(60), "nothing has stopped it"

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            stoppable(work, stop=ended.set)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.is_set()
