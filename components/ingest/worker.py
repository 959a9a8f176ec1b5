"""A process beside that of Ingest: takes tasks from its line, works on them, and ends with the line."""

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from types import ModuleType

from slipway.components.ingest.planning import Task
from slipway.components.ingest.worker_pool import Ended, Told, Work


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
    [descriptor] = arguments
    with Connection(int(descriptor)) as line, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        line.send(None)
        while True:
            work, task = line.recv()
            line.send(_ended(line, work, task))
    return 0


def _ended(line: Connection, work: Work, task: Task) -> Ended:
    try:
        return Ended(work(task, lambda rows, done_bytes: line.send(Told(rows, done_bytes))))
    except Exception as error:
        return Ended(error=error, trace=traceback.format_exc())


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Ingest waits for the end, and Python would first tear down all modules
