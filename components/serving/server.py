"""The HTTP server: takes few things, within limits, and says no in TF Serving's form: {"error": "..."}."""

import contextlib
import hmac
import ipaddress
import json
import logging
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson

from components.errors import ComponentError
from components.saved_model.class_names import class_names, names_classes
from components.saved_model.loading import WrongInputError
from components.serving.live_model import LiveModel, Served
from components.serving.routes import Route, metadata_document, route, status_document
from components.serving.tensors import RequestError, answer, parse_request

MAX_BODY_BYTES = 8 * 2**20
"""The largest request that is read."""
PATIENCE_S = 10.0
"""How long a client may take for each part of its request."""

_AT_ONCE = 32
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_log = logging.getLogger(__name__)


class ModelServer(ThreadingHTTPServer):
    """Serves one model under TF Serving's paths.

    Args:
        name: of the model, as it stands in the paths.
        host: the address to bind, e.g. 127.0.0.1.
        port: 0 for a free one; `server_address` says which.
        token: what clients must send as `Authorization: Bearer TOKEN`; empty: nothing, on loopback only.

    Raises:
        ComponentError: the address cannot be bound, or lies beyond this machine and there is no token.
    """

    daemon_threads = True
    request_queue_size = 64

    live: LiveModel
    """The version that answers; to be set before the first request is served."""

    def __init__(self, *, name: str, host: str, port: int, token: str = "") -> None:
        if not token and not is_loopback(host):
            raise ComponentError(
                f"{host} can be reached from other machines, and nothing asks them who they are.",
                hint="set SLIPWAY_SERVE_TOKEN to a secret that clients send as Authorization: Bearer ...",
            )
        self.name, self.token = name, token
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise ComponentError(
                f"{host}:{port} cannot be bound: {error.strerror or error}.", hint="choose another --port"
            ) from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.server_address[1]}"
        self.hosts = {*_LOCAL_NAMES, shown.lower()}

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread of its own, of which there are only so many."""
        if not self._free.acquire(blocking=False):
            with contextlib.suppress(OSError):
                request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Gives its place back when it is done."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A client that went away is no error of ours; anything else is logged, and the server lives on."""
        _log.debug("A connection ended early.", exc_info=True)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what is bound to that host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # refusals have a status line, whatever was sent
    server_version = "slipway"
    sys_version = ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        """Status and metadata."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Predictions."""
        self._answer("POST")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """The base's own refusals, e.g. of an unknown method, in the form of all others."""
        self.close_connection = True
        self._send(
            405 if code == 501 else code, {"error": message or self.responses.get(code, ("Error",))[0]}
        )

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing a client sends gets to the terminal."""

    def _answer(self, method: str) -> None:
        try:
            self._check()
            body = self._body() if method == "POST" else b""
            wanted = route(method, self.path, name=self.server.name)
            self._send(200, self._done(wanted, body))
        except RequestError as error:
            self._send(error.status, {"error": str(error)})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception:
            _log.exception("A request failed.")
            self._send(500, {"error": "The server failed; its log says why."})

    def _check(self) -> None:
        """Refuses what a page in a browser, or somebody beyond this machine, may send."""
        host = self.headers.get("Host", "").lower()
        name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
        if name not in self.server.hosts and not self.server.token:
            raise self._refusal(f"The host {host[:100]!r} is not served here.", 403)
        if self.headers.get("Origin") is not None:
            raise self._refusal("Pages in a browser are not served.", 403)
        given = self.headers.get("Authorization", "").encode()
        if self.server.token and not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            raise self._refusal("The token is missing or wrong.", 401)

    def _refusal(self, message: str, status: int) -> RequestError:
        # The body is not read, so nothing that follows on this connection could be understood.
        self.close_connection = True
        return RequestError(message, status=status)

    def _body(self) -> bytes:
        lengths = self.headers.get_all("Content-Length", [])
        length = lengths[0] if len(lengths) == 1 else ""
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise self._refusal("The request must have one Content-Length.", 411)
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            raise self._refusal(f"The request is larger than {MAX_BODY_BYTES} bytes.", 413)
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise self._refusal("The request ended early.", 400)
        return body

    def _done(self, wanted: Route, body: bytes) -> dict[str, Any]:
        served = self.server.live.served
        if wanted.version not in (None, served.version):
            which = f"Specific({self.server.name}, {wanted.version})"
            raise RequestError(f"Servable not found for request: {which}", status=404)
        if wanted.verb == "/metadata":
            return metadata_document(self.server.name, served.version, served.model.signatures)
        return _predicted(served, body) if wanted.verb else status_document(served.version)

    def _send(self, status: int, document: dict[str, Any]) -> None:
        body = orjson.dumps(document)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if status == 405:
            self.send_header("Allow", "GET, POST")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _predicted(served: Served, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)  # takes NaN, as TF Serving does
    except (ValueError, RecursionError) as error:
        raise RequestError(f"JSON Parse error: {str(error)[:200]}") from error
    try:
        name, by_row, arrays = parse_request(document, served.model.signatures)
        outputs = served.model.call(name, arrays)
    except WrongInputError as error:
        raise RequestError(error.message) from error
    except RecursionError as error:
        raise RequestError("The request is nested too deeply.") from error
    said = answer(outputs, by_row=by_row)
    if names_classes(served.classes, served.model.signatures[name]):
        [array] = outputs.values()
        said["classes"] = class_names(array, served.classes)  # beside what TF Serving answers
    return said
