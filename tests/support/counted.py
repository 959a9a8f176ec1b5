"""Counts the cost of work instead of timing it: the same on a busy machine as on an idle one."""

import gc
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any
from unittest import mock


def lines_run(work: Callable[[], Any]) -> int:
    """Count the lines of Python that this thread runs for some work; each pass of a loop counts again.

    Stands for the time of work that Python does itself. What a function written in C does counts as the line
    that calls it: hold that down by its memory (`peak_bytes`) or by what it is handed.
    """
    count = 0

    def on_line(_frame: FrameType, event: str, _value: Any) -> Any:
        nonlocal count
        count += event == "line"
        return on_line

    before, is_collected = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(on_line)
    try:
        work()
    finally:
        sys.settrace(before)
        if is_collected:
            gc.enable()
    return count


def peak_bytes(work: Callable[[], Any]) -> int:
    """Return the peak memory of Python and NumPy for some work, beyond what they held before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def commands_run(work: Callable[[], Any]) -> list[list[str]]:
    """Return the commands that this process starts through `subprocess` for some work.

    Not by an audit hook, which also hears `sys.settrace`: while its Python ran, CPython 3.11 could
    start a second thread, refuse its tracer, and so end that thread before it did any work.
    """
    found: list[list[str]] = []
    start = subprocess.Popen.__init__

    def noted(process: subprocess.Popen[Any], args: Any, *others: Any, **named: Any) -> None:
        found.append(
            [str(each) for each in ([args] if isinstance(args, str | bytes | os.PathLike) else args)]
        )
        start(process, args, *others, **named)

    with mock.patch.object(subprocess.Popen, "__init__", noted):
        work()
    return found
