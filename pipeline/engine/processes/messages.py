"""The messages between the engine and its fork server: one JSON object per line over a socket pair.

engine -> server    StartAhead, Compile, Settle, Reuse, FindPublished, Start, Signal
server -> engine    Compiled, Settled, Reused, Published or Refused; Started, Exited
"""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from slipway.pipeline.engine.launcher import Exited, Start, Started
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.record import NodeOutputs, Result
from slipway.pipeline.runs.run_target import Order
from slipway.pipeline.runs.typed_json import plain, typed


@dataclass(frozen=True)
class StartAhead:
    """Start a script that a node will request; see `slipway.components.isolated_script.IsolatedScript`."""

    path: str
    variables: dict[str, str]


@dataclass(frozen=True)
class Compile:
    """Compile the order."""

    order: Order


@dataclass(frozen=True)
class Compiled:
    """The graph of the compiled order."""

    graph: Graph


@dataclass(frozen=True)
class Settle:
    """Prepare the metadata store; see `store_upkeep.settle`."""

    runs: str


@dataclass(frozen=True)
class Settled:
    """The store is prepared."""


@dataclass(frozen=True)
class Reuse:
    """Register earlier results, by node id, as this run's results; see `launch.reuse`."""

    sources: dict[str, Result]


@dataclass(frozen=True)
class Reused:
    """The registered results by node id; those that the store does not know are missing."""

    results: dict[str, NodeOutputs]


@dataclass(frozen=True)
class FindPublished:
    """Find the results that nodes published under these run ids; see `launch.published`."""

    run_ids: list[str]


@dataclass(frozen=True)
class Published:
    """The results found, by node id."""

    results: dict[str, NodeOutputs]


@dataclass(frozen=True)
class Refused:
    """The order, or the metadata store, cannot be used.

    `is_ours` says whether the error is one of our own checks rather than an exception of the pipeline's
    code.
    """

    is_ours: bool
    message: str
    hint: str
    where: str


@dataclass(frozen=True)
class Signal:
    """Send a signal to a node."""

    node: str
    signum: int


StoreRequest = Settle | Reuse | FindPublished
Request = StartAhead | Compile | StoreRequest | Start | Signal
Answer = Compiled | Settled | Reused | Published | Refused | Started | Exited
_KINDS: dict[str, type] = {kind.__name__: kind for kind in (*get_args(Request), *get_args(Answer))}


class Channel:
    """Sends and receives messages; when one end closes, the other sees the end of the stream.

    Args:
        endpoint: one end of `socket.socketpair()`; owned by the channel from now on.
    """

    def __init__(self, endpoint: socket.socket) -> None:
        self._socket = endpoint
        self._pending = b""
        self.closed = False

    def fileno(self) -> int:
        """Return the file descriptor, for `select`."""
        return self._socket.fileno()

    def send(self, message: Request | Answer) -> None:
        """Send one message.

        Raises:
            BrokenPipeError: the other end is gone.
        """
        document = {"is": type(message).__name__, **plain(message)}
        self._socket.sendall(json.dumps(document).encode() + b"\n")

    def receive(self) -> Iterator[Any]:
        """Read once (block if nothing has arrived) and yield each complete `Request` or `Answer`.

        Raises:
            DocumentError: the data is not a message.
        """
        try:
            data = self._socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            self.closed = True
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            document = json.loads(line)
            yield typed(_KINDS[str(document["is"])], document)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
        self.closed = True
