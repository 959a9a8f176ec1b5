"""The HTTP server that the tests' doubles stand on, and ports for servers that are told theirs."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Says nothing of a client that left: tests kill and interrupt theirs, and read what stands on stderr."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port for a server that begins to listen in the block: until then the kernel gives it to nobody else.

    Who connects before is refused. The server must set SO_REUSEADDR, as servers do.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
