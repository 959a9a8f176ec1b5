"""Ends a process of tests that hangs out of pytest-timeout's reach, and tells where.

pytest-timeout raises in a signal's handler, once a test: where the main thread waits in C it never runs, and
what a test waits for as it ends has no limit any more. This is a thread of C that needs nothing of Python: it
writes the stacks of all threads to stderr and ends the process. xdist names the test and starts a new worker.
"""

import faulthandler
import os
from collections.abc import Iterator

import pytest

MARGIN_S = 60.0
"""After pytest-timeout's limit: a test that this ends may still take down what it has set up."""


class Watchdog:
    """The plugin; a test without a limit (`--timeout=0`) is not watched.

    Args:
        margin_s: after a test's limit.
    """

    def __init__(self, margin_s: float = MARGIN_S) -> None:
        self._margin_s = margin_s
        self._limit_s = 0.0
        # pytest puts files in the place of 1 and 2 while it runs tests; now it does not.
        self._stderr = os.dup(2)
        # A fork has no such thread, and would wait for it when it ends.
        os.register_at_fork(before=faulthandler.cancel_dump_traceback_later, after_in_parent=self._begin)

    def _begin(self) -> None:
        """Begins anew, in the place of what was begun before."""
        if self._limit_s:
            faulthandler.dump_traceback_later(self._limit_s, exit=True, file=self._stderr)
        else:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """A test, all that it sets up and takes down, and the wait for the next one."""
        given = _timeout_s(item)
        self._limit_s = given + self._margin_s if given else 0.0
        self._begin()
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        """pytest has ended the watch for whoever debugs the error; the test is still to be taken down."""
        self._begin()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The end of all."""
        self._begin()

    def pytest_unconfigure(self) -> None:
        """Lets the process live on."""
        self._limit_s = 0.0
        self._begin()


def _timeout_s(item: pytest.Item) -> float:
    """As pytest-timeout has it; 0: none."""
    marker = item.get_closest_marker("timeout")
    if marker is not None:
        return float(marker.args[0] if marker.args else marker.kwargs["timeout"])
    option = item.config.getoption("timeout")
    return float((item.config.getini("timeout") or 0) if option is None else option)
