"""Gives up waiting for work that hangs where no limit of its own reaches, such as in a library's C code."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Found = TypeVar("_Found")


class LateError(Exception):
    """The work takes longer than its limit; it goes on in its thread, and its result is lost."""


def within(limit_s: float, work: Callable[[], _Found]) -> _Found:
    """Return the result of the work, or raise its error, if it ends in time.

    Raises:
        LateError: it does not.
    """
    outcome: Future[_Found] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # raised again below
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return outcome.result(limit_s)
    except TimeoutError as error:
        if outcome.done():  # the work's own
            raise
        raise LateError from error
