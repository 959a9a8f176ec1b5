"""Starts isolated scripts before a node requests them; see `slipway/components/isolated_script.py`."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class _Waiting:
    process: subprocess.Popen[bytes]
    line: socket.socket


class ScriptsAhead:
    """The processes of isolated scripts, all children of this process.

    A process has no arguments at first. It belongs to the node that passes its arguments, and joins the
    node's process group.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        # Processes given to nodes, with the node's process id. Kept because `subprocess` itself reaps
        # processes whose Popen object was garbage-collected.
        self._given: dict[int, tuple[subprocess.Popen[bytes], int]] = {}

    def start(self, script: str, environment: Mapping[str, str]) -> None:
        """Start a process for the script, unless one waits already.

        Args:
            environment: all variables of the process.

        Raises:
            OSError: no further process can be started.
        """
        if script in self._waiting:
            return
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-I", script, "--ahead", str(os.getpid())],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=environment,
                )
        except OSError:
            ours.close()
            raise
        self._waiting[script] = _Waiting(process, ours)

    def give(
        self,
        script: str,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        descriptors: Sequence[int],
        *,
        node: int,
    ) -> int:
        """Pass the arguments to a waiting process, or to one that is started now.

        Args:
            script, environment: as for `start`.
            descriptors: for its output and its errors.
            node: process id of the node whose group it joins.

        Returns:
            The process id.

        Raises:
            OSError: no further process can be started.
        """
        request = json.dumps({"arguments": list(arguments), "group": node}).encode() + b"\n"
        while True:
            was_there = script in self._waiting
            self.start(script, environment)
            waiting = self._waiting.pop(script)
            self._given[waiting.process.pid] = waiting.process, node
            try:
                with waiting.line:
                    socket.send_fds(waiting.line, [request], list(descriptors))
            except BrokenPipeError:
                if not was_there:
                    raise
                continue  # the process ended while it waited
            return waiting.process.pid

    def owns(self, pid: int, nodes: Mapping[int, object]) -> bool:
        """Return True if the process waits, or was given to one of those nodes (keyed by process id)."""
        waits = any(each.process.pid == pid for each in self._waiting.values())
        return waits or (pid in self._given and self._given[pid][1] in nodes)

    def ended(self, pid: int, code: int) -> None:
        """Forget a process that has ended and was reaped."""
        process, _ = self._given.pop(pid, (None, 0))
        for script, waiting in list(self._waiting.items()):
            if waiting.process.pid == pid:
                waiting.line.close()
                process = self._waiting.pop(script).process
        if process is not None:
            process.returncode = code
