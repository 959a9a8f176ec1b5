"""A process that has imported TFX, and no user code: it forks the fork server of each run.

For programs that run many pipelines from one process, such as notebooks: only the first run waits for the
imports, and each run still imports the user's modules as they are on disk.
"""

import contextlib
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Self

from slipway.components.import_path import import_path
from slipway.components.python_process import ForkedProcess
from slipway.pipeline.engine.processes.module_forks import ModuleForks
from slipway.pipeline.engine.processes.os_processes import adopt_orphans, children, die_with_parent
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.root import PROJECT_ROOT

KERAS_VARIABLES = {"TF_USE_LEGACY_KERAS": "0", "KERAS_BACKEND": "tensorflow"}
"""Keras 3 on TensorFlow: what our components are made for, and the default."""

# Modules that a fork server imports for every pipeline, and that most nodes need.
_MODULES = ("slipway.pipeline.engine.tfx.compile", "slipway.pipeline.engine.tfx.launch", "tfx.v1")
_END_LIMIT_S = 5.0


class Warm:
    """The warm process, as its clients see it; one run at a time.

    Use it in a `with` statement; the process ends with it.
    """

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        path = import_path(PROJECT_ROOT, inherited=os.environ.get("PYTHONPATH", ""))
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "slipway.pipeline.engine.processes.warm",
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path, **KERAS_VARIABLES},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def start(
        self, module: str, *, environment: Mapping[str, str], descriptors: Sequence[int]
    ) -> ForkedProcess:
        """Forks `python -m MODULE FD... PARENT_PID`, once everything is imported.

        Args:
            module: its `main(arguments)` is called.
            environment: all variables of the new process.
            descriptors: for its output, for its errors, and further ones, whose numbers it gets as arguments.

        Raises:
            PipelineError: the process is gone.
        """
        try:
            return ForkedProcess(self._line, module, [str(self.pid)], environment, descriptors=descriptors)
        except OSError as error:
            raise PipelineError(
                f"The warm process is gone: {error}.", hint="begin another one: with Warm() as warm"
            ) from error

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()
        self._process.terminate()
        try:
            self._process.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main() -> None:
    """Entry point: `python -m slipway.pipeline.engine.processes.warm FD PARENT_PID`."""
    line = socket.socket(fileno=int(sys.argv[1]))
    die_with_parent(signal.SIGTERM, parent=int(sys.argv[2]))
    adopt_orphans()
    for module in _MODULES:
        importlib.import_module(module)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    forks = ModuleForks()
    forks.serve(line, node=os.getpgrp())
    while forks.descriptors():
        readable, _, _ = select.select([wake_read, *forks.descriptors()], [], [])
        if wake_read in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(wake_read, 4096)
        _reap(forks)
        for descriptor in set(readable).intersection(forks.descriptors()):
            forks.answer(descriptor)


def _reap(forks: ModuleForks) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            if forks.owns(pid):
                # Processes left behind by a killed fork server came to this process, and end with it.
                for orphan in children(os.getpid()):
                    if not forks.owns(orphan):
                        os.kill(orphan, signal.SIGKILL)
                forks.ended(pid, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
