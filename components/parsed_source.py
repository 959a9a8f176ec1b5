"""Parses Python source, in one thread at a time."""

import ast
import threading
import warnings

_ONE_AT_A_TIME = threading.Lock()


def parsed_source(source: str | bytes) -> ast.Module:
    """Return the syntax tree of a module, without warnings, for instance of an invalid escape in user code.

    Until Python 3.13 all threads share one count of a tree's depth: two that parse at once, such as the
    trials of a sweep side by side, could end in a SystemError. They share the filters of warnings, too.

    Raises:
        SyntaxError: the source is not Python.
        ValueError: it holds NUL bytes.
        RecursionError, MemoryError: it is nested too deeply.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # or raise, if warnings are errors
        return ast.parse(source)
