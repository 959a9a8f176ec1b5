"""Lets Ctrl-C end work in C code, since Python handles a signal only when control returns to Python."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from slipway.components.time_limit import in_thread

_Found = TypeVar("_Found")

_AGAIN_S = 0.1


def stoppable(work: Callable[[], _Found], *, stop: Callable[[], object]) -> _Found:
    """Run work in a separate thread, and wait for it in Python.

    DuckDB checks for signals itself, but misses about every other one; SQLite and libpq do not check.

    Args:
        work: a function whose result is returned, or whose error is raised.
        stop: ends the work early. It is called repeatedly until the work has ended, because a query that has
            not begun yet cannot be ended.

    Raises:
        KeyboardInterrupt: the user interrupted the work, and it has ended.
    """
    outcome: Future[_Found] = Future()
    try:
        in_thread(work, outcome)  # inside: Ctrl-C may come as soon as it has begun
        while not outcome.done():  # briefly: a signal just before a wait is seen only once it is over
            wait([outcome], _AGAIN_S)
        return outcome.result()
    except BaseException:
        while not outcome.done():
            stop()
            wait([outcome], _AGAIN_S)
        raise
