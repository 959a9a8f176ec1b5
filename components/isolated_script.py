"""Runs a script in an interpreter with neither our modules nor our settings; the engine may prestart it.

A script that can be prestarted is also run as `python -I SCRIPT --ahead PARENT_PID`: it imports what it
needs, then waits for one line of JSON on its stdin, a socket. The line is `{arguments, group}`: the arguments
that it would have got, and the process group to join. The descriptors for its stdout and stderr come with
the line. The script exits if the socket is closed before.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipway.components import python_process
from slipway.components.python_process import ForkedProcess, PythonProcess

# What a process needs to start at all and to find the machine's libraries; by the last one, the engine finds
# processes that a run has left behind.
_KEPT_VARIABLES = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "SLIPWAY_RUN_DIR")


@dataclass(frozen=True)
class IsolatedScript:
    """A script that runs in an isolated interpreter.

    `-I` leaves out PYTHONPATH, the user's site-packages and the current folder.

    Attributes:
        path: path of the script, which imports nothing of this project.
        variables: its environment variables, besides a few that it inherits from this process.
    """

    path: str
    variables: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """All environment variables of the script's process."""
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        return {**kept, **self.variables}

    def start(self, arguments: Sequence[str]) -> PythonProcess:
        """Start the script, with its output piped to `stdout` and this process's stderr.

        In a node of the engine, a prestarted process takes over, if there is one.

        Args:
            arguments: arguments of the script, after the id of the process that it must not outlive.

        Raises:
            OSError: the machine has no room for another process.
        """
        channel = python_process.fork_channel
        if channel is not None:
            return ForkedProcess(channel, self.path, arguments, self.environment, is_script=True)
        return subprocess.Popen(
            [sys.executable, "-I", self.path, str(os.getpid()), *arguments],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env=self.environment,
        )
