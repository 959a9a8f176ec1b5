"""The HTTP server that the tests' doubles stand on."""

import sys
from http.server import ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Says nothing of a client that left: tests kill and interrupt theirs, and read what stands on stderr."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
