"""The HTTP server: accepts little, within limits, and refuses in TF Serving's form: {"error": "..."}."""

import contextlib
import functools
import hmac
import ipaddress
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

import numpy.typing as npt
import orjson

from slipway.components.errors import ComponentError
from slipway.components.saved_model.class_names import class_names, classes_of_answers, names_of_rows
from slipway.components.saved_model.loading import WrongInputError
from slipway.components.saved_model.signatures import TRANSFORM_FEATURES
from slipway.components.serving.client_connection import HeaderLines, PatientSocket
from slipway.components.serving.connection_limit import Places
from slipway.components.serving.limits import (
    AT_ONCE,
    CALLS_AT_ONCE,
    MAX_BODY_BYTES,
    MAX_QUOTED,
    MAX_ROWS,
    PATIENCE_S,
)
from slipway.components.serving.live_model import LiveModel, Served
from slipway.components.serving.request_decoding import RequestError, answer, parse_request
from slipway.components.serving.rest_api import Route, metadata_document, route, status_document
from slipway.components.serving.row_batches import call_in_batches
from slipway.components.serving.strict_json import read_json, refuse_overflow

_ONCE = ("Host", "Content-Length", "Transfer-Encoding", "Authorization")
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_NAME = re.compile(r"[!-~]{1,128}")
_TOKEN = re.compile(r"[!-~]([ -~]*[!-~])?")  # what a header can hold
_Array = npt.NDArray[Any]
_log = logging.getLogger(__name__)


class Log(Protocol):
    """Records requests for predictions, like `slipway.components.request_log.request_log.BackgroundLog`."""

    def add(
        self,
        version: int,
        inputs: Mapping[str, _Array],
        outputs: Mapping[str, _Array],
        *,
        name: str,
        needed: Collection[str],
    ) -> None:
        """Record an answered request, with the name that the client gave it; return at once.

        Args:
            needed: the columns that have a value in every row of the version.
        """


class ModelServer(ThreadingHTTPServer):
    """Serves one model under TF Serving's paths.

    Args:
        host: the address to bind, e.g. 127.0.0.1.
        port: 0 for a free one; `server_address` has the actual port.
        token: clients must send it as `Authorization: Bearer TOKEN`; empty: no token, on loopback only.
        log: records answered requests; None: they are not recorded.

    Raises:
        ComponentError: the address cannot be bound, or is reachable from other machines without a token; or
            no header can hold the token.
    """

    daemon_threads = True
    request_queue_size = 64

    live: LiveModel
    """The version that answers; must be set before the first request."""

    def __init__(
        self,
        *,
        name: str,
        host: str,
        port: int,
        token: str = "",
        most_rows: int = MAX_ROWS,
        log: Log | None = None,
    ) -> None:
        if not token and not is_loopback(host):
            raise ComponentError(
                f"{host} can be reached from other machines, and they would not be authenticated.",
                hint="set SLIPWAY_SERVE_TOKEN to a secret that clients send as Authorization: Bearer ...",
            )
        if token and not _TOKEN.fullmatch(token):
            raise ComponentError(
                "SLIPWAY_SERVE_TOKEN begins or ends with a space or a line break, or is not plain ASCII: "
                "no client could send it.",
                hint="make one: export SLIPWAY_SERVE_TOKEN=$(openssl rand -hex 32)",
            )
        self.name, self.token, self.most_rows, self.log = name, token, most_rows, log
        self.places = Places(AT_ONCE)
        self.calls = threading.BoundedSemaphore(CALLS_AT_ONCE)
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
        """Answer in a new thread, or refuse the connection if the limit of connections is reached."""

        def end() -> None:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

        if not self.places.take(request, client=client_address[0], close=end):
            with contextlib.suppress(OSError):
                request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the connection's requests, then give its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.leave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Log the error and keep serving; usually the client has closed the connection."""
        _log.debug("A connection ended early.", exc_info=True)


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a server bound to the host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # so that refusals have a status line, whatever the client sent
    # A response takes two sends; the second would wait 40 ms for the client's acknowledgement of the first.
    disable_nagle_algorithm = True
    server_version = "slipway"
    sys_version = ""

    def setup(self) -> None:
        """Read from the client with a time limit."""
        super().setup()
        self._from_client = PatientSocket(self.connection)
        self._lines = self.rfile = HeaderLines(self._from_client)

    def handle_one_request(self) -> None:
        """Read one request and answer it, if it arrives in time."""
        self._from_client.waits_until = time.monotonic() + PATIENCE_S
        self.server.places.waits(self.connection)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Refuse a request that another server in front of this one may have interpreted differently."""
        self._lines.begin()
        if not super().parse_request():
            return False
        twice = [name for name in _ONCE if len(self.headers.get_all(name, [])) > 1]
        # Python accepts any white space between the parts of the first line, including non-ASCII.
        is_odd = self.requestline.split() != self.requestline.split(" ")
        if self._lines.is_malformed or twice or is_odd:
            self.send_error(400, f"The header {twice[0]} appears twice." if twice else "Malformed request.")
            return False
        return True

    def do_GET(self) -> None:
        """Answer requests for status and metadata."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Answer requests for predictions."""
        self._answer("POST")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Send the base class's own refusals, e.g. of an unknown method, in the form of all others."""
        self.close_connection = True
        # The base class repeats the whole first line, from whoever sends it.
        words = (message or self.responses.get(code, ("Error",))[0])[:MAX_QUOTED]
        self._send(405 if code == 501 else code, {"error": words})

    def log_message(self, format: str, *args: Any) -> None:
        """Keep text sent by clients off the terminal."""

    def _answer(self, method: str) -> None:
        try:
            self._check()
            body = self._body() if method == "POST" else self._no_body()
            self.server.places.is_being_answered(self.connection)
            # Not self.path, in which Python has made one slash of several at the beginning.
            wanted = route(method, self.requestline.split(" ")[1], name=self.server.name)
            document = self._done(wanted, body)
            self._send(200, document)
        except RequestError as error:
            self._send(error.status, {"error": str(error)})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception:
            _log.exception("A request failed.")
            self._send(500, {"error": "The server failed; its log says why."})

    def _check(self) -> None:
        """Refuse requests from a page in a browser, and unauthenticated ones from other machines."""
        host = self.headers.get("Host", "").lower()
        name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
        if name not in self.server.hosts and not self.server.token:
            raise self._refusal(f"The host {host[:MAX_QUOTED]!r} is not served here.", 403)
        if self.headers.get("Origin") is not None:
            raise self._refusal("Pages in a browser are not served.", 403)
        given = self.headers.get("Authorization", "").encode()
        if self.server.token and not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            raise self._refusal("The token is missing or wrong.", 401)

    def _refusal(self, message: str, status: int) -> RequestError:
        # The body stays unread, so nothing after it on this connection could be parsed.
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

    def _no_body(self) -> bytes:
        # A body stays unread, and what follows on this connection could be taken for a request.
        if "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True
        return b""

    def _done(self, wanted: Route, body: bytes) -> dict[str, object]:
        served = self.server.live.served
        if wanted.version not in (None, served.version):
            which = f"Specific({self.server.name}, {wanted.version})"
            raise RequestError(f"Servable not found for request: {which}", status=404)
        if wanted.verb == "/metadata":
            return metadata_document(self.server.name, served.version, served.model.signatures)
        if not wanted.verb:
            return status_document(served.version)
        with self.server.calls:
            signature, said, arrays, outputs = predicted(
                served,
                read_json(body),
                most_rows=self.server.most_rows,
                check=functools.partial(refuse_overflow, body),
            )
        if self.server.log is not None and signature != TRANSFORM_FEATURES:
            self.server.log.add(served.version, arrays, outputs, name=self._name(), needed=served.needed)
        return said

    def _name(self) -> str:
        """Return the client's name for the request; empty if missing, too long or malformed."""
        given = self.headers.get("X-Request-Id", "")
        return given if _NAME.fullmatch(given) else ""

    def _send(self, status: int, document: dict[str, object]) -> None:
        body = orjson.dumps(document)
        self.server.places.waits(self.connection)  # for the client to take it
        self.connection.settimeout(PATIENCE_S)
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


def predicted(
    served: Served,
    document: Any,
    *,
    most_rows: int = MAX_ROWS,
    check: Callable[[Mapping[str, _Array]], None] = lambda _: None,
) -> tuple[str, dict[str, object], dict[str, _Array], dict[str, _Array]]:
    """Answer a request.

    Args:
        document: the body of the request, parsed.
        check: refuses the arrays of the model's inputs by a RequestError.

    Returns:
        The signature's name, the response, and the arrays of the model's inputs and outputs.

    Raises:
        RequestError: the model cannot answer the request.
    """
    try:
        name, by_row, arrays = parse_request(
            document, served.model.signatures, most_rows=most_rows, dates=served.dates
        )
        check(arrays)
        outputs = call_in_batches(served.model, name, arrays)
    except WrongInputError as error:
        raise RequestError(error.message) from error
    except RecursionError as error:
        raise RequestError("The request is nested too deeply.") from error
    said = answer(outputs, by_row=by_row)
    is_prediction = name != TRANSFORM_FEATURES  # a transformed column is no probability
    classes = classes_of_answers(served.classes, served.model.signatures[name]) if is_prediction else {}
    if classes:
        # In addition to TF Serving's response, and in its form.
        named = {output: class_names(outputs[output], each) for output, each in classes.items()}
        is_one = len(outputs) == 1
        said["classes"] = names_of_rows(named, has_one_output=is_one) if by_row or is_one else named
    return name, said, arrays, outputs
