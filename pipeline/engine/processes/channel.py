"""The line between the engine and its fork server: one JSON object a line over a socket pair."""

import json
import socket
from collections.abc import Iterator, Mapping


class Channel:
    """Sends and receives JSON messages; when one end closes, the other sees the end of the stream.

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

    def send(self, message: Mapping[str, object]) -> None:
        """Sends one message.

        Raises:
            BrokenPipeError: the other end is gone.
        """
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> Iterator[dict[str, object]]:
        """Reads once (blocks if nothing has arrived) and yields the messages that are complete."""
        try:
            data = self._socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            self.closed = True
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            yield json.loads(line)

    def close(self) -> None:
        """Ends the line."""
        self._socket.close()
        self.closed = True
