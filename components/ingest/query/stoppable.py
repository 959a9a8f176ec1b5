"""Lets Ctrl-C end what works in C: Python answers a signal only once it is back in Python."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Found = TypeVar("_Found")

_AGAIN_S = 0.1


def stoppable(work: Callable[[], _Found], *, stop: Callable[[], object]) -> _Found:
    """Does work in a thread of its own, and waits for it in Python.

    DuckDB looks for signals itself, and misses them about every other time; SQLite and libpq do not look.

    Args:
        work: its result is returned, its error raised.
        stop: ends the work early. It is called again until the work has ended: a query that has not
            begun yet cannot be ended.

    Raises:
        KeyboardInterrupt: it was interrupted, and the work has ended.
    """
    outcome: Future[_Found] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # raised again below
            outcome.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
        return outcome.result()
    except BaseException:
        while not outcome.done():
            stop()
            thread.join(_AGAIN_S)
        raise
