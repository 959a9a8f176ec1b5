"""Counts the cost of work instead of timing it: the same on a busy machine as on an idle one."""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any


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

    before = sys.gettrace()
    sys.settrace(on_line)
    try:
        work()
    finally:
        sys.settrace(before)
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
    """Return the commands that this process starts for some work."""
    found: list[list[str]] = []
    _watched.append(found)
    try:
        work()
    finally:
        _watched.remove(found)
    return found


_watched: list[list[list[str]]] = []


def _note(event: str, values: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        for found in _watched:
            found.append([str(each) for each in values[1]])


sys.addaudithook(_note)  # for the process's life: there is no taking it back
