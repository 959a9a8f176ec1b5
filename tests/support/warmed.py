"""Runs a command line as a real process whose fork servers come from a warm one: no import to wait for.

As `python warmed.py FD PID ARGS...` it is `python local_runner.py ARGS...`, but for that. Its own start, its
signals and its end are those of any command; its servers are children of the warm process, and end because
their line to it is closed. That they end with it in other ways is for who starts a command without this.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slipway.pipeline.engine.processes.warm import WarmProcess

PROJECT = Path(__file__).resolve().parent.parent.parent


def start_warmed(
    warm: "WarmProcess",
    words: Sequence[str],
    *,
    environment: Mapping[str, str],
    program: Sequence[str] = (__file__,),
) -> "subprocess.Popen[str]":
    """Starts a command of local_runner.py; what it says goes through pipes.

    Args:
        warm: forks its servers.
        words: its arguments.
        environment: all its variables.
        program: what Python is given before FD and PID; it calls `main`.
    """
    line = warm._line.fileno()
    return subprocess.Popen(
        [sys.executable, *program, str(line), str(warm.pid), *words],
        cwd=PROJECT,
        env=environment,
        pass_fds=[line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lent(line: int, pid: int) -> "WarmProcess":
    """Another process's warm one.

    Args:
        line: the descriptor of the line to it, which this process was given.
        pid: its process id.
    """
    from slipway.pipeline.engine.processes.warm import WarmProcess

    os.set_inheritable(line, False)
    return WarmProcess(socket.socket(fileno=line), pid)


def fork_servers(line: int, pid: int) -> None:
    """From now on, fork the servers of this process's runs from the warm one; see `lent`."""
    from slipway.pipeline.engine.processes.client import ForkServerClient

    original, warm = ForkServerClient.__init__, lent(line, pid)

    def begin(self: ForkServerClient, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **{**options, "warm": warm})

    ForkServerClient.__init__ = begin  # type: ignore[method-assign]


def main(line: int, pid: int, words: Sequence[str]) -> None:
    """Runs the command."""
    sys.path[0] = str(PROJECT)
    import local_runner

    fork_servers(line, pid)
    sys.argv = ["local_runner.py", *words]
    local_runner.call(local_runner.app)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
