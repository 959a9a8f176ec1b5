"""The tests of a copy of the project, forked from the warm process: see staged_server.py."""

from staged_server import import_from_copy


def main(arguments: list[str]) -> int:
    """As `python -m pytest` in the copy."""
    import_from_copy()
    import pytest

    return pytest.main(arguments)
