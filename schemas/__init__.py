"""The schemas of the data, that of the workload file, and artifact types of our own."""

from typing import Any


def __getattr__(name: str) -> Any:
    """The artifact types: not before they are asked for, because they import TFX."""
    if name.startswith("_"):
        raise AttributeError(name)
    from schemas import artifacts

    return getattr(artifacts, name)
