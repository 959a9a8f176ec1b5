"""Reads a client's request within a time limit, and checks its header lines as received."""

import io
import re
import socket
import time
from typing import Any

# RFC 9112: a name without spaces, a colon, and a value without further line ends. The last line of a header
# is empty. Python accepts more than that, which other servers interpret differently.
_HEADER_LINE = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*)?\r?\n")


class PatientSocket(io.RawIOBase):
    """Reads from a socket until a fixed deadline, however little data arrives at a time.

    Args:
        connection: the socket; its timeout is changed.
    """

    waits_until = 0.0
    """The deadline, by `time.monotonic`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def readable(self) -> bool:
        """Return True, as for any readable stream."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the available data.

        Raises:
            TimeoutError: the deadline has passed.
        """
        left_s = self.waits_until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        return self._connection.recv_into(buffer)


class HeaderLines(io.BufferedReader):
    """Reads from a client, and records whether a line was not a valid header."""

    is_malformed = False
    """Whether one of the lines since `begin` was not a valid header."""

    def begin(self) -> None:
        """Start the headers of a new request."""
        self.is_malformed = False

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return one line, like any reader."""
        line = super().readline(size)
        self.is_malformed |= _HEADER_LINE.fullmatch(line) is None
        return line
