"""Limits connections: when all places are taken, the client that keeps the server waiting longest must go."""

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
    """The places of a server. Safe to be used by several threads.

    A connection waits while its request is on the way, and no longer once the request is there whole. One
    that waits gives way to a new one: of the client with the most of them that wait, the one that has waited
    longest. So clients that send slowly, or nothing, stand in the way of nobody but each other.
    """

    at_most: int
    _taken: dict[Hashable, _Place] = field(default_factory=dict)  # the longest waiting first
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, connection: Hashable, *, client: str, close: Callable[[], None]) -> bool:
        """Takes a place; False: all are taken by requests that are being answered.

        Args:
            close: ends the connection where it has to give way, and may be called at any time until `leave`.
        """
        with self._lock:
            if len(self._taken) >= self.at_most and not self._make_room():
                return False
            self._taken[connection] = _Place(client, close)
            return True

    def waits(self, connection: Hashable) -> None:
        """Notes that a connection has been answered and may send another request."""
        with self._lock:
            if place := self._taken.pop(connection, None):
                self._taken[connection] = _Place(place.client, place.close)

    def is_being_answered(self, connection: Hashable) -> None:
        """Notes that a connection's request is there whole: it does not give way any more."""
        with self._lock:
            if place := self._taken.get(connection):
                place.waits = False

    def leave(self, connection: Hashable) -> None:
        """Gives the place back, if the connection still has one."""
        with self._lock:
            self._taken.pop(connection, None)

    def _make_room(self) -> bool:
        waiting = {connection: place for connection, place in self._taken.items() if place.waits}
        if not waiting:
            return False
        held = Counter(place.client for place in waiting.values())
        # Of equals, max takes the first: who has waited longest.
        slowest = max(waiting, key=lambda connection: held[waiting[connection].client])
        self._taken.pop(slowest).close()
        return True
