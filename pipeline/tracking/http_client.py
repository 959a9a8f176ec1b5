"""Sends requests to a tracker's server, with time limits, without redirects, and with address-free errors."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import requests

from slipway.components.time_limit import LateError, within
from slipway.pipeline.tracking.tracker import TrackerError

_SHOWN_LETTERS = 200
_MOST_BYTES = 1 << 20  # of an answer


@dataclass(frozen=True)
class Limits:
    """The time limits of a request, in seconds. A background process sends it, so no one waits for it.

    Attributes:
        send_s: to connect, and for the server to accept the next piece: urllib3 has one limit for both.
        answer_s: between two bytes of an answer.
        total_s: for the whole request, however steadily bytes arrive.
    """

    send_s: float
    answer_s: float
    total_s: float


CALL = Limits(send_s=5, answer_s=60, total_s=120)
UPLOAD = Limits(send_s=60, answer_s=600, total_s=3600)
"""Limits for a file: a model may be large, and a server may store it elsewhere before it answers."""


class AnswerError(TrackerError):
    """The server answered with an error.

    Attributes:
        code: the server's error code, such as RESOURCE_DOES_NOT_EXIST; empty if it gave none.
    """

    def __init__(self, words: str, *, status: int, code: str) -> None:
        # Too many requests, and the answers of a proxy that cannot reach the server.
        super().__init__(words, is_away=status in (429, 502, 503, 504))
        self.status, self.code = status, code


@dataclass(frozen=True)
class HttpClient:
    """A server's address with the credentials for it, which come from the environment.

    Attributes:
        address: the server's address without a trailing slash.
        auth: user and password; None if there are none.
        limits: the limits of a request without and with a file.
    """

    address: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: tuple[str, str] | None = field(default=None, repr=False)
    limits: tuple[Limits, Limits] = (CALL, UPLOAD)
    _has_answered: threading.Event = field(
        default_factory=threading.Event, init=False, repr=False, compare=False
    )

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        file: IO[bytes] | bytes | None = None,
    ) -> dict[str, Any]:
        """Send a request and return the answer's JSON object, empty if the answer holds none.

        Args:
            path: the path below the server's address.
            body: the body, sent as JSON.
            query: the parameters of the URL.
            file: the body, sent unchanged.

        Raises:
            AnswerError: the server answered with an error.
            TrackerError: the server cannot be reached.
        """
        limits = self.limits[file is not None]
        try:
            status, content = _within(
                limits.total_s,
                lambda: _request(
                    method,
                    self.address + path,
                    json=body,
                    data=file,
                    params=query,
                    headers=dict(self.headers),
                    # Without an `auth`, an entry for this host in ~/.netrc would replace our header.
                    auth=self.auth or (lambda request: request),
                    timeout=(limits.send_s, limits.answer_s),
                    allow_redirects=False,  # credentials go only to the configured address
                    stream=True,
                ),
            )
            if not 200 <= status < 300:
                raise _refusal(status, _json(content))
        except TrackerError as error:
            # A server that has answered before is reachable, so the cause is this request.
            error.is_away = error.is_away and not self._has_answered.is_set()
            if not error.is_away:
                self._has_answered.set()
            raise
        self._has_answered.set()
        if content.lstrip().startswith(b"<"):
            raise TrackerError("answered with a page, as a sign-in or another kind of server does")
        return _json(content)


def _request(method: str, url: str, *, timeout: tuple[float, float], **options: Any) -> tuple[int, bytes]:
    """Send a request; return the status and content of the answer."""
    try:
        with requests.request(method, url, timeout=timeout, **options) as answer:
            content = bytearray()
            for part in answer.iter_content(1 << 16):
                content += part
                if len(content) > _MOST_BYTES:
                    raise TrackerError(f"answered {answer.status_code} with more than {_MOST_BYTES:,} bytes")
            return answer.status_code, bytes(content)
    except requests.exceptions.InvalidHeader as error:
        raise TrackerError(
            "was not contacted: its credentials contain a line break or a superfluous space"
        ) from error
    except requests.RequestException as error:
        # The error's text may contain the address.
        raise TrackerError(f"could not be reached ({type(error).__name__})", is_away=True) from error
    except ValueError as error:  # raised by http.client for an invalid header, which its text contains
        raise TrackerError("was not contacted: its credentials are not valid HTTP headers") from error


def _within(limit_s: float, work: Callable[[], tuple[int, bytes]]) -> tuple[int, bytes]:
    """Return the result of `work`, which a server that drips bytes keeps from a socket's limits."""
    try:
        return within(limit_s, work)
    except LateError:
        raise TrackerError(f"took longer than {limit_s:g} s", is_away=True) from None


def _refusal(status: int, document: Mapping[str, object]) -> AnswerError:
    code, said = (
        " ".join(str(document.get(key, "")).split())[:_SHOWN_LETTERS] for key in ("error_code", "message")
    )
    words = f"answered {status}" + "".join(f": {each}" for each in (code, said) if each)
    return AnswerError(words, status=status, code=code)


def _json(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
