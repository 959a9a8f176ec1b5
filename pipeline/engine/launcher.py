"""The border between the engine and what starts its nodes: what is asked for, and what is reported. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from slipway.pipeline.engine.failure import Failed
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.runs.record import Made


class LauncherLostError(PipelineError):
    """The process that starts the nodes is gone, with every node that ran in it."""


@dataclass(frozen=True, slots=True)
class Start:
    """The order to start a node.

    Attributes:
        attempt: which one, from 1.
        log: the file that takes everything it writes.
        progress: the file that it tells its progress in.
        left: the folder for what people may want to see when it fails, which need not exist.
        state: the folder for the state to continue from, which need not exist; empty: there is none.
    """

    node: str
    attempt: int
    log: str
    progress: str
    left: str
    state: str


@dataclass(frozen=True, slots=True)
class Started:
    """A node has a process."""

    node: str
    pid: int


@dataclass(frozen=True, slots=True)
class Exited:
    """A node's process has ended, with all that it started.

    Attributes:
        code: the exit code, or the negative signal number as `subprocess` gives it.
        peak_bytes: the most memory that the process held; 0 if unknown.
        result: what it reported; None if it died before.
    """

    node: str
    code: int
    peak_bytes: int
    result: Made | Failed | None


class Launcher(Protocol):
    """Starts nodes and reports how they end; `processes.client.Server` does so on this machine."""

    def start(self, start: Start) -> None:
        """Has a node started, whose last attempt has ended.

        Raises:
            LauncherLostError: it is gone.
        """

    def signal(self, node_id: str, signum: int) -> None:
        """Sends a signal to a node that was started, and to what that has started.

        Raises:
            LauncherLostError: it is gone.
        """

    def receive(self, timeout_s: float) -> Iterable[Started | Exited]:
        """Returns the events since the last call; waits up to `timeout_s` seconds for one.

        Raises:
            LauncherLostError: it is gone.
        """

    def kill(self) -> None:
        """Ends every node at once."""
