"""The messages between the engine and its fork server, one JSON object a line over a socket pair.

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
from slipway.pipeline.runs.record import Made, Result
from slipway.pipeline.runs.run_target import Order
from slipway.pipeline.runs.typed_json import plain, typed


@dataclass(frozen=True)
class StartAhead:
    """Start what a node will ask for; see `slipway.components.isolated_script.IsolatedScript`."""

    path: str
    variables: dict[str, str]


@dataclass(frozen=True)
class Compile:
    """Compile the order."""

    order: Order


@dataclass(frozen=True)
class Compiled:
    """The order's pipeline."""

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
    """Register earlier results, by node id, as this run's; see `launch.reuse`."""

    sources: dict[str, Result]


@dataclass(frozen=True)
class Reused:
    """The results registered, by node id, as far as the store knows them."""

    results: dict[str, Made]


@dataclass(frozen=True)
class FindPublished:
    """Find what nodes published under those ids of runs; see `launch.published`."""

    run_ids: list[str]


@dataclass(frozen=True)
class Published:
    """The results found, by node id."""

    results: dict[str, Made]


@dataclass(frozen=True)
class Refused:
    """An order, or a store, that cannot be used; `is_ours`: our own code says so, and not the pipeline's."""

    is_ours: bool
    message: str
    hint: str
    where: str


@dataclass(frozen=True)
class Signal:
    """Send a signal to a node."""

    node: str
    signum: int


Request = StartAhead | Compile | Settle | Reuse | FindPublished | Start | Signal
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
        """For `select`."""
        return self._socket.fileno()

    def send(self, message: Request | Answer) -> None:
        """Sends one message.

        Raises:
            BrokenPipeError: the other end is gone.
        """
        document = {"is": type(message).__name__, **plain(message)}
        self._socket.sendall(json.dumps(document).encode() + b"\n")

    def receive(self) -> Iterator[Any]:
        """Reads once (blocks if nothing has arrived) and yields each `Request` or `Answer` that is complete.

        Raises:
            DocumentError: what arrived is not a message.
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
        """Ends the line."""
        self._socket.close()
        self.closed = True
