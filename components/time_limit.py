"""Runs work in a thread of its own, and gives up waiting for what hangs, such as in a library's C code."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Found = TypeVar("_Found")


class LateError(Exception):
    """The work takes longer than its limit; it goes on in its thread, and its result is lost."""


def in_thread(work: Callable[[], _Found], outcome: Future[_Found]) -> None:
    """Begin the work in a thread that does not keep the process alive; its outcome can be waited for."""

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # raised again by who waits for it
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()


def within(limit_s: float, work: Callable[[], _Found]) -> _Found:
    """Return the result of the work, or raise its error, if it ends in time.

    Raises:
        LateError: it does not.
    """
    outcome: Future[_Found] = Future()
    in_thread(work, outcome)
    try:
        return outcome.result(limit_s)
    except TimeoutError as error:
        if outcome.done():  # the error is the work's own, or it has just ended
            return outcome.result()
        raise LateError from error
