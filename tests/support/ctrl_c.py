"""Ctrl-C in the middle of a test's own process."""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def ctrl_c_after(seconds: float, once: threading.Event | None = None) -> Iterator[None]:
    """Send SIGINT to the main thread after some seconds, and after an event, unless the block ends before.

    Hypothesis measures each look for garbage with a callback in Python. An interrupt that arrives during such
    a look is raised in that callback, where Python swallows it: of twenty that hit a process busy with
    garbage, six were lost. No callback is left while the block runs; without Hypothesis there is none.
    """
    me = threading.main_thread().ident
    assert me is not None
    is_over = threading.Event()

    def send() -> None:
        while once is not None and not once.wait(0.01):
            if is_over.is_set():
                return
        signal.pthread_kill(me, signal.SIGINT)

    timer = threading.Timer(seconds, send)
    callbacks = gc.callbacks[:]
    # A shell's job in the background ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.callbacks.clear()
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        is_over.set()
        gc.callbacks[:] = callbacks
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupted(seconds: float, once: threading.Event | None = None) -> Iterator[None]:
    """A block that Ctrl-C ends after some seconds and, if given, an event, with KeyboardInterrupt."""
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(seconds, once):
        yield
