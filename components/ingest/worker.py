"""A process beside that of Ingest: a worker that starts in some tenths of a second."""

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from slipway.components import worker


class _NoPandas:
    """Hides pandas: Arrow imports it with its first array, for nothing here, in half of a worker's start.

    A finder of modules, in `sys.meta_path`.
    """

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:  # noqa: ARG002
        if name == "pandas":
            raise ModuleNotFoundError("not in this process", name=name)


def main(arguments: Sequence[str]) -> int:
    """Entry point: `python -m slipway.components.ingest.worker DESCRIPTOR`, of a socket to `worker_pool`."""
    sys.meta_path.insert(0, _NoPandas())
    importlib.import_module("slipway.components.ingest.local_ingest")
    return worker.main(arguments)


if __name__ == "__main__":
    worker.end(main(sys.argv[1:]))
