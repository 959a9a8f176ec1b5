"""A process that has imported TFX but no user code, and forks the fork server of each run.

For programs that run many pipelines, such as notebooks: only the first run waits for the imports, and each
run still imports the user's modules as they are on disk.
"""

import contextlib
import importlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Self

from slipway.components.large_imports import large_imports
from slipway.components.python_process import ForkedProcess, start_in_background
from slipway.pipeline.engine.processes.module_forks import ModuleForks
from slipway.pipeline.engine.processes.os_processes import adopt_orphans, children, die_with_parent
from slipway.pipeline.engine.tfx import metadata_store_lock
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.wiring.keras_choice import KERAS_VARIABLES

# Modules that the fork server imports for every pipeline, and that most nodes need.
_MODULES = ("slipway.pipeline.engine.tfx.compile", "slipway.pipeline.engine.tfx.launch", "tfx.v1")
_END_LIMIT_S, _LOOK_S = 5.0, 0.2


class WarmProcess:
    """The client's handle on a process that has imported TFX.

    Attributes:
        is_spare: whether a run that cannot be forked from it starts without it.
    """

    is_spare = False

    def __init__(self, line: socket.socket, pid: int) -> None:
        self._line = line
        self.pid = pid

    def start(
        self, module: str, *, environment: Mapping[str, str], descriptors: Sequence[int]
    ) -> ForkedProcess:
        """Fork `python -m MODULE FD... PARENT_PID`, once everything is imported.

        Args:
            module: its `main(arguments)` is called.
            environment: all variables of the new process.
            descriptors: for its output and its errors, and further ones, whose numbers are passed as
                arguments.

        Raises:
            PipelineError: the warm process is gone.
        """
        try:
            return ForkedProcess(self._line, module, [str(self.pid)], environment, descriptors=descriptors)
        except OSError as error:
            raise PipelineError(
                f"The warm process is gone: {error}.", hint="start another one: with Warm() as warm"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()


class Warm(WarmProcess):
    """A warm process owned by this program. The runs that are forked from it may be side by side.

    Use it in a `with` statement, at whose end the process ends.
    """

    def __init__(self) -> None:
        line, theirs = socket.socketpair()
        with theirs:
            self._process = start_in_background(
                "slipway.pipeline.engine.processes.warm",
                str(theirs.fileno()),
                str(os.getpid()),
                variables=KERAS_VARIABLES,
                pass_fds=[theirs.fileno()],
            )
        super().__init__(line, self._process.pid)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
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
    import_ahead()
    server = WarmServer()
    server.add(line)
    while server.is_used:
        server.serve()


def import_ahead() -> None:
    """Import the modules that every run needs, and no user code."""
    with large_imports(keep=True):
        for module in _MODULES:
            importlib.import_module(module)
        metadata_store_lock.turns()  # so that runs side by side use one


class WarmServer:
    """The server side of a warm process: forks what clients request, and ends what has lost its client."""

    def __init__(self) -> None:
        adopt_orphans()
        self._wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._forks = ModuleForks()
        self._abandoned_since: dict[int, float] = {}

    def add(self, line: socket.socket) -> None:
        """Serve the requests of a connection from now on."""
        self._forks.serve(line, node=os.getpgrp())

    @property
    def is_used(self) -> bool:
        """Whether a connection is open, or a process that a client requested still runs."""
        return bool(self._forks.descriptors() or self._forks.abandoned())

    def serve(self, *others: int, timeout_s: float | None = None) -> list[int]:
        """Wait once for requests and ends of processes, and answer them.

        Args:
            others: further descriptors to wait for.
            timeout_s: the longest wait; None for no limit.

        Returns:
            The descriptors of `others` that are readable.
        """
        if self._forks.abandoned():
            timeout_s = min(timeout_s or _LOOK_S, _LOOK_S)
        watched = [self._wake_read, *self._forks.descriptors()]
        readable, _, _ = select.select([*watched, *others], [], [], timeout_s)
        if self._wake_read in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        self._reap()
        for descriptor in set(readable).intersection(self._forks.descriptors()):
            self._forks.answer(descriptor)
        self._end_abandoned()
        return [each for each in others if each in readable]

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if self._forks.owns(pid):
                    # This process inherits what a killed fork server leaves behind, and kills it.
                    for orphan in children(os.getpid()):
                        if not self._forks.owns(orphan):
                            os.kill(orphan, signal.SIGKILL)
                    self._forks.ended(pid, os.waitstatus_to_exitcode(status))

    def _end_abandoned(self) -> None:
        """Kill processes that do not end by themselves soon after their client is gone, e.g. stopped ones."""
        now = time.monotonic()
        since = {pid: self._abandoned_since.get(pid, now) for pid in self._forks.abandoned()}
        self._abandoned_since = since
        for pid, began in since.items():
            if now - began > _END_LIMIT_S:
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
