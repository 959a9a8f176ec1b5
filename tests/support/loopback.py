"""The HTTP server that the tests' doubles stand on, and ports for servers that are told theirs."""

import contextlib
import json
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any


class Server(ThreadingHTTPServer):
    """Says nothing of a client that left: tests kill and interrupt theirs, and read what stands on stderr."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class JsonAnswers:
    """Lets a BaseHTTPRequestHandler answer in JSON, and say nothing of it."""

    def answer(self, code: int, document: Any) -> None:
        """Sends the answer to a request."""
        body = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Silent."""


@contextlib.contextmanager
def running(server: socketserver.TCPServer) -> Iterator[str]:
    """Lets a server answer in a thread of this process, at the address that comes back, and closes it."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port for a server that begins to listen in the block: until then the kernel gives it to nobody else.

    Who connects before is refused. The server must set SO_REUSEADDR, as servers do.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
