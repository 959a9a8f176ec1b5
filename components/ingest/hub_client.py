"""Sends requests to the Hugging Face Hub, and puts its refusals into words.

Its address and the token come from the environment only, HF_ENDPOINT and HF_TOKEN, see docs/data.md. The
token is sent to that address alone, not to the servers that it redirects downloads to, and is never logged.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.hub_address import MAIN, DataSet

if TYPE_CHECKING:
    from requests import Response, Session

HUB = "https://huggingface.co"
RETRY_S = 300.0
"""How long transient failures of one request are retried: as long as the Hub counts requests together."""
AWAY_S = 15.0
"""The same for the first questions to a Hub that cannot be reached at all."""
MOST_ANSWER_BYTES = 16 << 20
"""The most bytes of an answer of the API; a page that lists a thousand files takes a few hundred kB."""
_PIECE_BYTES = 1 << 20
_FIRST_WAIT_S, _MOST_WAIT_S = 1.0, 30.0
_TIMEOUT_S = (10.0, 60.0)  # to connect, and between two bytes
_SHOWN_LETTERS = 200
_TRIED_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
# The Hub's header RateLimit: "api";r=0;t=55 says that it counts anew in 55 seconds.
_COUNTS_ANEW = re.compile(r";\s*t=(\d+)")
_HERE = ("localhost", "127.0.0.1", "::1")

T = TypeVar("T")


class PassingError(FileError):
    """The same request may succeed a moment later.

    Attributes:
        wait_s: how long the server asks to wait; 0 if it does not say.
        is_away: whether the server could not be reached.
    """

    def __init__(self, message: str, *, hint: str, wait_s: float = 0.0, is_away: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.wait_s, self.is_away = wait_s, is_away


class NoEntryError(FileError):
    """The data set has no such file or folder."""


def retried(work: Callable[[], T], *, away_s: float | None = None) -> T:
    """Return the result of `work`, which is called again while it raises PassingErrors, for up to RETRY_S.

    Args:
        away_s: for how long if the server cannot be reached; None: RETRY_S, too.
    """
    began, wait_s = time.monotonic(), _FIRST_WAIT_S
    while True:
        try:
            return work()
        except PassingError as error:
            pause_s = max(wait_s, error.wait_s)
            limit_s = away_s if error.is_away and away_s is not None else RETRY_S
            if time.monotonic() + pause_s > began + limit_s:
                raise
        time.sleep(pause_s)
        wait_s = min(2 * wait_s, _MOST_WAIT_S)


def document(data_set: DataSet, path: str, query: str = "") -> tuple[Any, str]:
    """Return what the Hub's API answers, and the query of the next page; empty if there is none.

    Args:
        path: the path below the data set's own in the API, quoted.
        query: the query of the request, encoded.

    Raises:
        FileError: the Hub refuses, cannot be reached or answers something else than JSON.
    """
    return retried(lambda: _document(data_set, path, query), away_s=AWAY_S)


def _document(data_set: DataSet, path: str, query: str) -> tuple[Any, str]:
    with answered(
        data_set, f"/api/datasets/{data_set.repository}/{path}" + (f"?{query}" if query else "")
    ) as answer:
        content = b""
        for chunk in answer.iter_content(_PIECE_BYTES):
            content += chunk
            if len(content) > MOST_ANSWER_BYTES:
                raise not_the_hub(data_set)
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise not_the_hub(data_set) from error
        # Only the query: the address may be the Hub's own, where HF_ENDPOINT names a mirror of it.
        return found, urlsplit(answer.links.get("next", {}).get("url", "")).query


@contextmanager
def answered(data_set: DataSet, path: str, headers: Mapping[str, str] | None = None) -> "Iterator[Response]":
    """Provide the Hub's answer to a request, whose content is read inside the context.

    Args:
        path: the path below the Hub's address, quoted, maybe with a query.

    Raises:
        PassingError: the Hub cannot be reached, is busy or breaks off, also inside the context.
        FileError: it refuses, or the environment's settings are wrong.
    """
    from requests import RequestException

    from slipway.components.http_session import sends

    hub, token = _endpoint(), _token()
    try:
        with _session().get(
            hub + path,
            headers={"Accept-Encoding": "identity", **(headers or {})},
            auth=sends(f"Bearer {token}" if token else None),
            timeout=_TIMEOUT_S,
            stream=True,
        ) as answer:
            if answer.status_code >= 400:
                raise _refusal(data_set, answer, has_token=bool(token))
            yield answer
    except RequestException as error:
        raise _unreached(data_set, hub, error) from None


def _unreached(data_set: DataSet, hub: str, error: Exception) -> FileError:
    from requests import ConnectionError, Timeout
    from requests.exceptions import ChunkedEncodingError, SSLError

    # The error's own text, also as a cause, may hold the signed address of a download.
    message = f"{data_set.address}: {hub} cannot be reached ({type(error).__name__})"
    hint = "check the network, HTTPS_PROXY, and HF_ENDPOINT if you set it"
    if isinstance(error, SSLError) or not isinstance(error, ConnectionError | Timeout | ChunkedEncodingError):
        return FileError(message, hint=hint)
    return PassingError(message, hint=hint, is_away=True)


def not_the_hub(data_set: DataSet) -> FileError:
    """Return the error for an answer that the Hub would not give, such as a sign-in page."""
    return FileError(
        f"{data_set.address}: {_endpoint()} answers something else than the Hub's API would",
        hint="check HF_ENDPOINT, and whether a proxy asks for a sign-in",
    )


def _endpoint() -> str:
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    # Anywhere in the text, because even a malformed address may hold a secret, and messages name it.
    if any(letter in endpoint for letter in "@?#"):
        raise FileError(
            "HF_ENDPOINT holds a user or a password, a query or a fragment",
            hint="name the address alone; set HF_TOKEN",
        )
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise FileError(f"HF_ENDPOINT: {endpoint} is not an address", hint=f"name one such as {HUB}")
    if parts.scheme == "http" and parts.hostname not in _HERE and _token():
        raise FileError(
            f"HF_ENDPOINT: {endpoint} is not encrypted: anybody on the way could read the token",
            hint="name an address with https://, or unset HF_TOKEN",
        )
    return endpoint


def _token() -> str:
    token = os.environ.get("HF_TOKEN", "").strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise FileError(
            "HF_TOKEN is not a token: it holds blanks or letters that no header can", hint="copy it again"
        )
    return token


def _session() -> "Session":
    return _session_of(os.getpid())


@cache
def _session_of(pid: int) -> "Session":  # noqa: ARG001  (processes cannot share connections)
    from slipway.components.http_session import PlainSession

    return PlainSession()


def _refusal(data_set: DataSet, answer: "Response", *, has_token: bool) -> FileError:
    status, code, said = answer.status_code, answer.headers.get("X-Error-Code", ""), _said(answer)
    page = f"{_endpoint()}/datasets/{data_set.repository}"
    name, sees = data_set.name, "that may read it" if has_token else "of an account that may read it"
    if status in _TRIED_AGAIN:
        return _busy(data_set, answer, has_token=has_token)
    if code == "EntryNotFound":
        return NoEntryError(f"{data_set.address} has no such file", hint=f"look at {page}")
    if code == "GatedRepo":
        return FileError(
            f"{name} is gated: its owner lets those in who agree to conditions",
            hint=f"agree to them on {page}, and set HF_TOKEN to a token of that account",
        )
    if code == "RevisionNotFound":
        return FileError(
            f"{name} has no revision {data_set.revision!r}", hint=f"its branches and tags: {page}/tree/{MAIN}"
        )
    if said == "Invalid credentials in Authorization header":
        return FileError(f"{name}: the Hub does not know the token in HF_TOKEN", hint="make a new one")
    if code == "RepoNotFound" or status in (401, 404):
        # The Hub does not tell strangers which data sets exist.
        seen = "HF_TOKEN's account cannot see it" if has_token else "it is private, and HF_TOKEN is not set"
        return FileError(
            f"{name}: there is no such data set, or {seen}",
            hint=f"correct the address, or set HF_TOKEN to a token {sees}",
        )
    if status == 403:
        return FileError(f"{name}: permission denied: {said}", hint=f"set HF_TOKEN to a token {sees}")
    return FileError(f"{data_set.address}: the Hub answers {status}: {said}", hint=f"look at {page}")


def _busy(data_set: DataSet, answer: "Response", *, has_token: bool) -> PassingError:
    after = answer.headers.get("Retry-After", "")
    anew = _COUNTS_ANEW.search(answer.headers.get("RateLimit", ""))
    wait_s = float(after if after.isdecimal() else anew[1] if anew else 0)
    if answer.status_code == 429:
        more = "" if has_token else "; it allows more with HF_TOKEN than without"
        return PassingError(
            f"{data_set.name}: too many requests to the Hub in a short time (429)",
            hint=f"run again in five minutes{more}",
            wait_s=wait_s,
        )
    return PassingError(
        f"{data_set.name}: the Hub is out of order ({answer.status_code})",
        hint="run again when it answers",
        wait_s=wait_s,
    )


def _said(answer: "Response") -> str:
    text = answer.headers.get("X-Error-Message", "") or answer.reason or ""
    return " ".join(text.split())[:_SHOWN_LETTERS]
