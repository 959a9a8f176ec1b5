"""A node's worker process: takes tasks from a connection, works on them, and ends with the connection."""

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection

from slipway.components.process_pool import ProgressMessage, ResultMessage, Task, Work
from slipway.components.python_process import end_at_once


def main(arguments: Sequence[str]) -> int:
    """Serve the process pool: `python -m slipway.components.pool_worker DESCRIPTOR`, of its socket."""
    [descriptor] = arguments
    work: Work | None = None
    with Connection(int(descriptor)) as line, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        line.send(None)
        while True:
            given, task = line.recv()
            work = given or work
            line.send(_result_of(line, work, task))
    return 0


def _result_of(line: Connection, work: Work | None, task: Task) -> ResultMessage:
    assert work is not None  # noqa: S101  (for the type checker: the first message has it)
    try:
        return ResultMessage(
            work(task, lambda rows, done_bytes: line.send(ProgressMessage(rows, done_bytes)))
        )
    except Exception as error:
        return ResultMessage(error=error, trace=traceback.format_exc())


if __name__ == "__main__":
    end_at_once(main(sys.argv[1:]))  # the node waits for it, and Python would tear down all modules
