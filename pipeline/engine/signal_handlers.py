"""Signal handlers for Ctrl-C, SIGTERM and SIGHUP: one that counts the signals, and one that raises at once.

Their effect is elsewhere: at the first signal `scheduler.py` ends the nodes in order, with the grace period
of `attempt.py`; at the second it kills them. Outside of the scheduler, `run_end.py` closes the run.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_handled_by(handler: Callable[..., object]) -> Iterator[None]:
    """Call `handler(signum, frame)` for Ctrl-C, SIGTERM and SIGHUP; restore the earlier handlers at the end.

    SIGHUP, of a terminal that is closed, is left ignored if it is, as by `nohup`. It is handled once and
    ignored from then on, since a shell and the kernel each send it, the second perhaps after the block.

    Also applies if SIGINT is ignored, as shells set it for background jobs of a script: a signal sent to a
    run is meant for it. Does nothing outside the main thread, e.g. in a notebook's worker, because Python
    handles signals only in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        signum: signal.signal(signum, _once(handler) if signum == signal.SIGHUP else handler)
        for signum in _ENDING
        if _is_heard(signum)
    }
    try:
        yield
    finally:
        for signum, earlier in before.items():
            if _is_heard(signum):
                signal.signal(signum, earlier)


def _is_heard(signum: int) -> bool:
    return signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN


def _once(handler: Callable[..., object]) -> Callable[..., object]:
    def handle(signum: int, frame: object) -> None:
        signal.signal(signum, signal.SIG_IGN)
        handler(signum, frame)

    return handle


class Interruptions:
    """A signal handler that counts signals.

    It does not raise at the first one, because the run's loop may be in the middle of a message or a file.
    """

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: object) -> None:
        """Count a signal.

        Raises:
            KeyboardInterrupt: at the second and later signals.
        """
        self.note()
        if self.count > 1:
            raise KeyboardInterrupt

    def note(self, *_: object) -> None:
        """Count a signal that comes while what is written must not be cut short."""
        self.count += 1


def raise_interrupt(*_: object) -> None:
    """Handle a signal for work that may be abandoned anywhere.

    Raises:
        KeyboardInterrupt: always; with a text, without which Beam makes it a RuntimeError.
    """
    raise KeyboardInterrupt("interrupted")
