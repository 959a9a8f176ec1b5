"""Limits connections: if all places are taken, the client that keeps the server waiting longest loses one."""

import threading
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field


@dataclass
class _Place:
    client: str
    close: Callable[[], None]
    waits: bool = True


@dataclass
class Places:
    """The places for connections to a server. Thread-safe.

    A connection is waiting until its request has arrived completely, and again while its answer is sent. If a
    new connection needs a place, it takes that of a waiting one: of the client with the most waiting
    connections, the one that has waited longest. So clients that send or read slowly, or not at all, only
    obstruct each other.
    """

    at_most: int
    _taken: dict[Hashable, _Place] = field(default_factory=dict)  # the longest waiting first
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, connection: Hashable, *, client: str, close: Callable[[], None]) -> bool:
        """Take a place; return False if requests that are being answered take all of them.

        Args:
            connection: identifies the place.
            client: identifies the client.
            close: ends the connection if its place is needed; may be called at any time until `leave`.
        """
        with self._lock:
            if len(self._taken) >= self.at_most and not self._make_room():
                return False
            self._taken[connection] = _Place(client, close)
            return True

    def waits(self, connection: Hashable) -> None:
        """Record that a connection's answer is ready to be taken, or that it may send another request."""
        with self._lock:
            if place := self._taken.pop(connection, None):
                self._taken[connection] = _Place(place.client, place.close)

    def is_being_answered(self, connection: Hashable) -> None:
        """Record that a connection's request has arrived completely: the connection keeps its place."""
        with self._lock:
            if place := self._taken.get(connection):
                place.waits = False

    def leave(self, connection: Hashable) -> None:
        """Give the place back, if the connection still has one."""
        with self._lock:
            self._taken.pop(connection, None)

    def _make_room(self) -> bool:
        waiting = {connection: place for connection, place in self._taken.items() if place.waits}
        if not waiting:
            return False
        held = Counter(place.client for place in waiting.values())
        # Among equals, max takes the first: the one that has waited longest.
        slowest = max(waiting, key=lambda connection: held[waiting[connection].client])
        self._taken.pop(slowest).close()
        return True
