"""Handles Ctrl-C and SIGTERM: the first asks a run to end its nodes, the second ends it without grace."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def answered_by(handler: Callable[..., object]) -> Iterator[None]:
    """Calls `handler(signum, frame)` for Ctrl-C and SIGTERM; restores the previous handlers at the end.

    Also where the shell had Ctrl-C ignored, as it does for what a script starts in the background: who sends
    a signal to a run means it. Does nothing outside the main thread, e.g. in a notebook's worker: Python lets
    only the main thread handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signum: signal.signal(signum, handler) for signum in _ENDING}
    try:
        yield
    finally:
        for signum, earlier in before.items():
            signal.signal(signum, earlier)


class Interruptions:
    """A signal handler for a run: counts, for its loop may be in the middle of a message or of a file."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: object) -> None:
        """Notes a signal.

        Raises:
            KeyboardInterrupt: it is not the first one.
        """
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt


def raise_interrupt(*_: object) -> None:
    """A signal handler for work that may be abandoned anywhere.

    Raises:
        KeyboardInterrupt: always.
    """
    raise KeyboardInterrupt
