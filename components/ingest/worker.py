"""A worker process of Ingest, which starts in a few tenths of a second."""

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from slipway.components import pool_worker
from slipway.components.python_process import end_at_once


class _NoPandas:
    """A module finder for `sys.meta_path` that hides pandas.

    Arrow imports pandas with its first array. That import is not needed here, and takes half of a worker's
    start.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if name == "pandas":
            raise ModuleNotFoundError("not in this process", name=name)


def main(arguments: Sequence[str]) -> int:
    """Entry point of `python -m slipway.components.ingest.worker DESCRIPTOR`, a socket to `process_pool`."""
    sys.meta_path.insert(0, _NoPandas())
    importlib.import_module("slipway.components.ingest.local_ingest")
    return pool_worker.main(arguments)


if __name__ == "__main__":
    end_at_once(main(sys.argv[1:]))
