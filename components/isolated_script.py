"""A script in an interpreter with neither our modules nor our settings; the engine may start it ahead.

A script that can be started ahead is also run as `python -I SCRIPT --ahead PARENT_PID`: it imports what it
needs, then waits for one line of JSON on its stdin, a socket: `{arguments, group}`, the arguments it would
have got and the process group to join. With the line come the descriptors of its output and its errors. It
ends where the line is closed before.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipway.components import python_process
from slipway.components.python_process import ForkedProcess, PythonProcess

# What a process needs to start at all, to find the machine's libraries, and to be found: by the last one the
# engine knows what a run has left behind.
_KEPT_VARIABLES = ("HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "SLIPWAY_RUN_DIR")


@dataclass(frozen=True)
class IsolatedScript:
    """A script by itself.

    The interpreter is isolated (`-I`): no PYTHONPATH, no user's packages, not the current folder.

    Attributes:
        path: of the file, which imports nothing of this project.
        variables: its environment, beside a few of this process's own.
    """

    path: str
    variables: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """All variables of its process."""
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        return {**kept, **self.variables}

    def start(self, arguments: Sequence[str]) -> PythonProcess:
        """Starts it; its output comes through `stdout`, its errors go where ours go.

        In a node of the engine it is a process that waits for it already, if there is one.

        Args:
            arguments: for the script, after the process id that it must not outlive.

        Raises:
            OSError: there is no room for another process.
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
