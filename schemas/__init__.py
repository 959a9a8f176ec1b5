"""The schemas of the data and of the workload file, and Slipway's own artifact types."""

from importlib import import_module
from typing import Any

from slipway import refuse_other_name

refuse_other_name(__name__)


def __getattr__(name: str) -> Any:
    """Import the artifact types on first use, because they import TFX."""
    if name.startswith("_") or name == "artifacts":  # looked up before the submodule is imported
        raise AttributeError(name)
    return getattr(import_module("slipway.schemas.artifacts"), name)
