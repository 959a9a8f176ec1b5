"""Signals that end a command: which are handled, and which are left as they were."""

import os
import signal

import pytest

from slipway.pipeline.engine.signal_handlers import Interruptions, raise_interrupt, signals_handled_by


@pytest.fixture(autouse=True)
def handlers_as_before():
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_that_ends_is_handled(signum):
    with pytest.raises(KeyboardInterrupt), signals_handled_by(raise_interrupt):
        os.kill(os.getpid(), signum)


def test_the_earlier_handlers_are_restored():
    earlier = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with signals_handled_by(raise_interrupt):
        pass
    assert {signum: signal.getsignal(signum) for signum in earlier} == earlier


def test_a_terminal_that_closes_counts_once_however_often_it_tells():
    with signals_handled_by(signals := Interruptions()):
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
    assert signals.count == 1


def test_a_terminal_that_tells_again_after_the_block_ends_nothing_that_is_left_to_do():
    with signals_handled_by((outer := Interruptions()).note):
        with pytest.raises(KeyboardInterrupt), signals_handled_by(raise_interrupt):
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
    assert outer.count == 0
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_under_nohup_a_terminal_that_closes_is_not_heard():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals_handled_by(signals := Interruptions()):
        os.kill(os.getpid(), signal.SIGHUP)
    assert signals.count == 0
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_within_a_step_of_beam_stays_an_interruption(signum):
    """Beam names its step in the text of any exception, and makes one without a text a RuntimeError."""
    import apache_beam as beam

    def end(_):
        os.kill(os.getpid(), signum)

    with (
        pytest.raises(KeyboardInterrupt),
        signals_handled_by(raise_interrupt),
        beam.Pipeline(runner="FnApiRunner") as pipeline,
    ):
        _ = pipeline | beam.Create([1]) | beam.Map(end)
