"""The engine's handle on its fork server."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pipeline.errors import PipelineError, UsageError
from pipeline.local.channel import Channel
from pipeline.local.graph import Graph
from pipeline.local.processes import RUN_VARIABLE
from pipeline.root import PROJECT_ROOT

# Importing TFX takes 6 s on an idle machine of 2 cores; a hundredfold is no longer slow but stuck.
_COMPILE_LIMIT_S = 600.0


class Server:
    """Starts the fork server and talks to it.

    Args:
        run_folder: marks the server's processes, and gets its log.
    """

    def __init__(self, run_folder: Path) -> None:
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        self._log = run_folder / "logs" / "engine.log"
        self._pending: list[dict[str, Any]] = []
        environment = {
            **os.environ,
            RUN_VARIABLE: str(run_folder),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT_ROOT), os.environ.get("PYTHONPATH")])),
            "TF_USE_LEGACY_KERAS": "0",
            "KERAS_BACKEND": "tensorflow",
            "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1"),
        }
        with self._log.open("ab") as log, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pipeline.local.fork_server", str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                pass_fds=[theirs.fileno()],
                # A terminal's Ctrl-C goes to the engine alone, which ends the nodes in order.
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, op: str, **values: Any) -> None:
        """Asks for something; see fork_server.py for the list.

        Raises:
            PipelineError: the server is gone.
        """
        try:
            self._channel.send({"op": op, **values})
        except BrokenPipeError as error:
            raise self._gone() from error

    def receive(self, timeout_s: float) -> list[dict[str, Any]]:
        """What the server has told since; waits up to `timeout_s` seconds for the first message.

        Raises:
            PipelineError: the server is gone.
        """
        messages, self._pending = self._pending, []
        readable, _, _ = select.select([self._channel], [], [], 0 if messages else timeout_s)
        if readable:
            messages += self._channel.receive()
            if self._channel.closed:
                raise self._gone()
        return messages

    def compile(self, values: Mapping[str, Any], *, tick: Any) -> Graph:
        """Has the pipeline built and compiled.

        Args:
            values: `{target, run_id, parameters, beam_args}`.
            tick: called a few times a second while waiting.

        Raises:
            UsageError: the pipeline's own code refused; the message is that code's.
        """
        self.send("compile", **values)
        answer = self._wait_for("graph", tick)
        return Graph.from_json(answer["graph"])

    def reuse(self, executions: Mapping[str, int], *, tick: Any) -> dict[str, Any]:
        """Has earlier executions registered as this run's; returns the results by node id."""
        if not executions:
            return {}
        self.send("reuse", executions=dict(executions))
        results: dict[str, Any] = self._wait_for("reused", tick)["results"]
        return results

    def _wait_for(self, event: str, tick: Any) -> dict[str, Any]:
        waited_s = 0.0
        while waited_s < _COMPILE_LIMIT_S:
            found = None
            others = []
            for message in self.receive(0.2):
                if message["event"] == event:
                    found = message
                elif message["event"] == "refused":
                    where = f"{message['where']}: " if message["where"] else ""
                    raise UsageError(f"{where}{message['message']}", hint=message["hint"])
                else:
                    others.append(message)
            self._pending += others
            if found is not None:
                return found
            waited_s += 0.2
            tick()
        raise PipelineError(f"The fork server gave no answer in {_COMPILE_LIMIT_S:.0f} s.", hint=f"see {self._log}")

    def _gone(self) -> PipelineError:
        code = self._process.wait()
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return PipelineError(
            f"The process that starts the nodes {how}.", hint=f"see {self._log}; python local_runner.py resume"
        )

    def close(self) -> None:
        """Ends the server and everything it started."""
        self._channel.close()
        # The server kills its nodes when the line closes; one that is stuck in an import is killed here,
        # and its nodes, which asked the kernel for that, with it.
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Ends the server and its nodes at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
