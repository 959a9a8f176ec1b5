"""Reads a client's request within a time limit, and checks its header lines as received."""

import io
import re
import socket
import time
from typing import Any

# RFC 9112: a name without spaces, a colon, and a value without further ends of lines. The last line of a
# header is empty. Python reads more than that as a header, and other servers read it otherwise.
_HEADER_LINE = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*)?\r?\n")


class PatientSocket(io.RawIOBase):
    """Reads from a socket until a time that does not move, however little comes at a time.

    Args:
        connection: the socket; its timeout is changed.
    """

    waits_until = 0.0
    """By `time.monotonic`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads what there is.

        Raises:
            TimeoutError: the time is over.
        """
        left_s = self.waits_until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        return self._connection.recv_into(buffer)


class HeaderLines(io.BufferedReader):
    """Reads from a client, and notes whether a line was no header."""

    is_malformed = False
    """Whether one of the lines since `begin` was not a header."""

    def begin(self) -> None:
        """The lines that follow are a request's headers."""
        self.is_malformed = False

    def readline(self, size: int | None = -1, /) -> bytes:
        """One line, as any reader gives it."""
        line = super().readline(size)
        self.is_malformed |= _HEADER_LINE.fullmatch(line) is None
        return line
