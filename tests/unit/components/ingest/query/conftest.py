"""What the tests of queries share."""

import signal
import threading
from contextlib import contextmanager

import pytest


@contextmanager
def ctrl_c_after(seconds):
    """Sends SIGINT to the main thread, unless the block ends before."""
    me = threading.main_thread().ident
    timer = threading.Timer(seconds, lambda: signal.pthread_kill(me, signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.fixture
def interrupted():
    """A block that Ctrl-C ends after some seconds, with KeyboardInterrupt."""

    @contextmanager
    def block(seconds):
        with pytest.raises(KeyboardInterrupt), ctrl_c_after(seconds):
            yield

    # A shell's job in the background ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield block
    signal.signal(signal.SIGINT, before)
