"""A Python module in a process of its own: forked by the engine where there is one, else started afresh.

The engine's fork server has imported TensorFlow and Keras already, so a process that it forks begins 4 s
earlier. Without it (another orchestrator or interpreter, a test) the module is started with `python -m`.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Protocol, TypedDict

# The line to the fork server; the engine sets it in the processes of its nodes.
fork_channel: socket.socket | None = None


class PythonProcess(Protocol):
    """The interface of both kinds of process: the part of `subprocess.Popen` that is used here."""

    pid: int
    stdout: IO[str] | None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end; raises `subprocess.TimeoutExpired` after `timeout` seconds."""

    def terminate(self) -> None:
        """Sends SIGTERM."""

    def kill(self) -> None:
        """Sends SIGKILL."""


def start_module(
    module: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    may_fork: bool,
    interpreter: str | None = None,
) -> PythonProcess:
    """Starts `python -P -m MODULE ARGUMENTS...`; its output comes through `stdout`, its errors go where ours
    go.

    Args:
        module: its `main(arguments: list[str]) -> int` is called. Where it is started afresh it also gets
            `--parent-pid PID`, the process that it must not outlive; a fork ends with its node anyway.
        arguments: for `main`.
        environment: all variables of the new process. `PYTHONPATH` is honoured in a fork too.
        may_fork: False where the process needs another state of the libraries than this one has, such as
            another Keras backend.
        interpreter: path of another Python than this one, which is never forked.
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


def ending(code: int) -> str:
    """How a process ended without last words, in words, from its exit code or its negative signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


class _Answer(TypedDict, total=False):
    """What the fork server tells: that the process runs, that it could not be started, or how it ended."""

    pid: int
    error: str
    code: int


# Threads ask one after the other, each until it is answered: of two requests on the line, the kernel mixes
# what is larger than a packet, or gives the end of one and the beginning of the next out together.
_asking = threading.Lock()


class ForkedProcess:
    """A process that the fork server started for this one, in the same process group.

    What the server tells of it comes on a line of its own, so that several can be asked for on one channel.

    Args:
        channel: the line to the fork server.
        module, arguments, environment: as for `start_module`.
        descriptors: for its output and its errors, and further ones, whose numbers `main` gets before the
            arguments; None: a pipe, and where ours go.
        is_script: whether `module` is the path of an `isolated_script` instead, which is no fork.

    Raises:
        ConnectionError: the fork server is gone.
        OSError: there is no room for another process.
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
        """The exit code, negative for a signal; None while it runs."""
        try:
            return self.wait(timeout=0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end; raises `subprocess.TimeoutExpired` after `timeout` seconds."""
        if self._code is None:
            # With a timeout of 0 s the socket would be made non-blocking, and raise another error.
            self._told.settimeout(timeout or (None if timeout is None else 1e-3))
            try:
                self._code = int(self._answer()["code"])
            except TimeoutError:
                raise subprocess.TimeoutExpired("forked process", timeout or 0.0) from None
            self._told.close()
        return self._code

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._send(signal.SIGKILL)

    def _send(self, signum: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, signum)

    def _answer(self) -> _Answer:
        line = b""
        while not line.endswith(b"\n"):
            received = self._told.recv(1)  # an answer is a few bytes, and the next one is for the next call
            if not received:
                raise ConnectionError("the fork server is gone")
            line += received
        answer: _Answer = json.loads(line)
        return answer
