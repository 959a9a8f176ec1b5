"""Runs a Python module in a separate process: forked by the engine if there is one, else started afresh.

The engine's fork server has already imported TensorFlow and Keras, so a process that it forks starts 4 s
sooner. Without it (another orchestrator or interpreter, a test) the module is started with `python -m`.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, NoReturn, Protocol, TypedDict

from slipway.components.import_path import import_path
from slipway.components.project import PROJECT_ROOT

# The socket to the fork server; the engine sets it in the processes of its nodes.
fork_channel: socket.socket | None = None


class PythonProcess(Protocol):
    """The interface of both kinds of process: the part of `subprocess.Popen` that is used here."""

    pid: int
    stdout: IO[str] | None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code at the end; raise `subprocess.TimeoutExpired` after `timeout` seconds."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


def start_module(
    module: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    may_fork: bool,
    interpreter: str | None = None,
) -> PythonProcess:
    """Start `python -P -m MODULE ARGUMENTS...`, with its output piped to `stdout` and this process's stderr.

    Args:
        module: a module whose `main(arguments: list[str]) -> int` is called. If it is started afresh, it also
            gets `--parent-pid PID`, the process that it must not outlive; a fork ends with its node anyway.
        arguments: arguments of `main`.
        environment: all environment variables of the new process. A fork honours `PYTHONPATH` too.
        may_fork: False if the process needs its libraries in another state than in this process, such as
            with another Keras backend.
        interpreter: path of a different Python interpreter, which is never forked.
    """
    if may_fork and interpreter is None and fork_channel is not None:
        return ForkedProcess(fork_channel, module, arguments, environment)
    return subprocess.Popen(
        [interpreter or sys.executable, "-P", "-m", module, *arguments, "--parent-pid", str(os.getpid())],
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        env=dict(environment),
    )


def start_in_background(
    module: str, *arguments: str, variables: Mapping[str, str] | None = None, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start `python -m MODULE ARGUMENTS` without this process's streams; Ctrl-C and hang-ups do not reach it.

    Args:
        variables: environment variables beside this process's.

    Raises:
        OSError: no process can be started.
    """
    path = import_path(PROJECT_ROOT, inherited=os.environ.get("PYTHONPATH", ""))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path, **(variables or {})},
        pass_fds=pass_fds,
        start_new_session=True,
    )


def end_at_once(code: int) -> NoReturn:
    """End this process without what Python does at its end; what was printed is still written."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader is gone, the disk full, or it was closed
            stream.flush()
    os._exit(code)


def ending(code: int) -> str:
    """Describe how a process without an error message ended, from its exit code or negative signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


class _Answer(TypedDict, total=False):
    """The fork server's message: the process runs, it could not be started, or it has ended."""

    pid: int
    error: str
    code: int


# Threads send requests one at a time and wait for the answer: with two requests on the socket, the kernel may
# interleave those that are larger than a packet, or deliver the end of one with the beginning of the next.
_asking = threading.Lock()


class ForkedProcess:
    """A process that the fork server started for this process, in the same process group.

    The server's messages about it arrive on a socket of its own, so one channel can serve several processes.

    Args:
        channel: the socket to the fork server.
        module, arguments, environment: as for `start_module`.
        descriptors: file descriptors for its stdout and stderr, and further ones, whose numbers `main` gets
            before the arguments; None: a pipe, and this process's stderr.
        is_script: whether `module` is instead the path of an `isolated_script`, which is not forked.

    Raises:
        ConnectionError: the fork server is gone.
        OSError: the machine has no room for another process.
    """

    def __init__(
        self,
        channel: socket.socket,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Sequence[int] | None = None,
        *,
        is_script: bool = False,
    ) -> None:
        self._code: int | None = None
        self.stdout: IO[str] | None = None
        request = {
            "script" if is_script else "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
        }
        line = json.dumps(request).encode() + b"\n"
        self._told, theirs = socket.socketpair()
        try:
            with _asking:
                with theirs:
                    if descriptors is None:
                        reading, writing = os.pipe()
                        self.stdout = os.fdopen(reading, encoding="utf-8", errors="replace")
                        with os.fdopen(writing, "wb"):
                            socket.send_fds(channel, [line], [theirs.fileno(), writing, 2])
                    else:
                        socket.send_fds(channel, [line], [theirs.fileno(), *descriptors])
                answer = self._answer()
        except BaseException:
            self._close()
            raise
        if "error" in answer:
            self._close()
            raise OSError(f"{module} could not be started: {answer['error']}")
        self.pid: int = answer["pid"]

    def _close(self) -> None:
        self._told.close()
        if self.stdout is not None:
            self.stdout.close()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""
        try:
            return self.wait(timeout=0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code at the end; raise `subprocess.TimeoutExpired` after `timeout` seconds."""
        if self._code is None:
            # A timeout of 0 s would make the socket non-blocking, which raises a different error.
            self._told.settimeout(timeout or (None if timeout is None else 1e-3))
            try:
                self._code = int(self._answer()["code"])
            except TimeoutError:
                raise subprocess.TimeoutExpired("forked process", timeout or 0.0) from None
            self._told.close()
        return self._code

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._send(signal.SIGKILL)

    def _send(self, signum: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended; the server will tell
                os.kill(self.pid, signum)

    def _answer(self) -> _Answer:
        line = b""
        while not line.endswith(b"\n"):
            received = self._told.recv(1)  # byte by byte: what follows this answer is for the next call
            if not received:
                raise ConnectionError("the fork server is gone")
            line += received
        answer: _Answer = json.loads(line)
        return answer
