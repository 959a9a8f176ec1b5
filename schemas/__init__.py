"""The schemas of the data, that of the workload file, and artifact types of our own."""

from importlib import import_module
from typing import Any

from slipway import refuse_other_name

refuse_other_name(__name__)


def __getattr__(name: str) -> Any:
    """Import the artifact types on first use, because they import TFX."""
    if name.startswith("_") or name == "artifacts":  # the module itself is asked for before it is imported
        raise AttributeError(name)
    return getattr(import_module("slipway.schemas.artifacts"), name)
