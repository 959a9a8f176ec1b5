"""Leaves out a file of tests that needs a package which is not installed, without importing it.

`pytest.importorskip` would import it in each worker, also where none of the file's tests runs.
"""

import importlib.util

import pytest


def needed(module: str, *, reason: str) -> None:
    """Skip the file of tests that calls this, if the module is not installed."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # not even the package that it would lie in
        found = None
    if found is None:
        pytest.skip(reason, allow_module_level=True)
