"""The interface between the engine and the launcher of its nodes: requests and events. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from slipway.pipeline.engine.failure import Failed
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.runs.record import NodeOutputs


class LauncherLostError(PipelineError):
    """The process that starts the nodes is gone, and with it every node that it ran."""


@dataclass(frozen=True, slots=True)
class Start:
    """A request to start a node.

    Attributes:
        attempt: the number of the attempt, from 1.
        log: the file for all output of the node.
        progress: the file in which the node reports its progress.
        left: the folder for files to inspect after a failure; it need not exist.
        state: the folder of the state to continue from, which need not exist; empty if there is none.
    """

    node: str
    attempt: int
    log: str
    progress: str
    left: str
    state: str


@dataclass(frozen=True, slots=True)
class Started:
    """The event that a node's process was started."""

    node: str
    pid: int


@dataclass(frozen=True, slots=True)
class Exited:
    """The event that a node's process, and every process it started, has ended.

    Attributes:
        code: the exit code, or the negative signal number, as in `subprocess`.
        peak_bytes: the peak memory of the process; 0 if unknown.
        result: the result that the process reported; None if it died before.
    """

    node: str
    code: int
    peak_bytes: int
    result: NodeOutputs | Failed | None


class Launcher(Protocol):
    """Starts nodes and reports how they end; `processes.client.ForkServerClient` does so on this machine."""

    def start(self, start: Start) -> None:
        """Start a node whose previous attempt, if any, has ended.

        Raises:
            LauncherLostError: the launcher is gone.
        """

    def signal(self, node_id: str, signum: int) -> None:
        """Send a signal to a started node and to the processes it started.

        Raises:
            LauncherLostError: the launcher is gone.
        """

    def receive(self, timeout_s: float) -> Iterable[Started | Exited]:
        """Return the events since the last call; wait up to `timeout_s` seconds for one.

        Raises:
            LauncherLostError: the launcher is gone.
        """

    def kill(self) -> None:
        """Kill every node at once."""
