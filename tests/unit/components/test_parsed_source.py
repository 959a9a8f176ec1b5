"""Source that several threads parse at once."""

import ast
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from slipway.components.parsed_source import parsed_source


def test_threads_that_parse_at_once_get_the_same_trees():
    source = "".join(f"def f{n}(a):\n    return [a + {n}, {{'b': (a, [a])}}]\n" for n in range(300))
    # Python that runs in the middle of a parse lets another thread go on: here, what each collection calls.
    before, threshold = sys.getswitchinterval(), gc.get_threshold()
    calls: list[int] = []
    called = lambda *_: calls.append(sum(range(20)))  # noqa: E731
    gc.callbacks.append(called)
    gc.set_threshold(20)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            trees = list(threads.map(parsed_source, [source] * 40))
    finally:
        sys.setswitchinterval(before)
        gc.set_threshold(*threshold)
        gc.callbacks.remove(called)
    assert {ast.dump(tree) for tree in trees} == {ast.dump(ast.parse(source))}


def test_what_is_no_python_is_a_syntax_error():
    with pytest.raises(SyntaxError):
        parsed_source(b"def f(:\n")
