"""Says which errors of Google's clients may pass, so that the same request may be repeated.

Also makes errors of answers that the clients cannot read, as those of a gateway before the service.
"""

import ssl
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.api_core.exceptions import GoogleAPICallError

TRUST = "behind a proxy, set REQUESTS_CA_BUNDLE to the file of the certificates, as PEM, that have signed it"
"""The remedy for a certificate that cannot be verified."""

TIMEOUT_S, RETRY_S = 30.0, 60.0
"""The time for one request to Vertex AI, and for a request with all its retries."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 10.0
"""The wait before the first retry, and the longest. Google asks clients to wait at least a second."""


def passing_errors() -> tuple[type[Exception], ...]:
    """Return the errors after which the same request may succeed a moment later.

    google.api_core's own predicate, `if_transient_error`, leaves out 502, 504, and an answer that does not
    come in time.
    """
    import requests
    from google.api_core import exceptions
    from google.auth.exceptions import TransportError

    return (
        exceptions.ServerError,
        exceptions.TooManyRequests,
        requests.exceptions.ConnectionError,
        requests.exceptions.Timeout,
        requests.exceptions.ChunkedEncodingError,
        TransportError,  # the place that gives tokens, which are renewed every hour, did not answer
    )


def may_pass(error: Exception) -> bool:
    """Return True if the same request may succeed a moment later; see `passing_errors`.

    A certificate that cannot be verified is an error of the connection too, and stays.
    """
    return isinstance(odd_answer(error) or error, passing_errors()) and not certificate_refused(error)


def patience(
    passes: Callable[[Exception], bool] = may_pass, note: Callable[[Exception], object] | None = None
) -> dict[str, object]:
    """Return the timeout of a request to Vertex AI, and a policy that repeats it, as its clients take them.

    Args:
        passes: tells after which errors.
        note: gets each error after which the request may be repeated.
    """
    from google.api_core.retry import Retry

    retry = Retry(
        predicate=passes, initial=FIRST_WAIT_S, maximum=LONGEST_WAIT_S, timeout=RETRY_S, on_error=note
    )
    return {"retry": retry, "timeout": TIMEOUT_S}


def odd_answer(error: BaseException) -> "GoogleAPICallError | None":
    """Return the client's error for an answer's status if it failed at reading that answer; else None.

    A gateway in between may answer with JSON or a page of its own. In an error the clients look for
    `error.message`, in any other answer for the fields of a message, and raise whatever exception results.
    """
    from google.api_core import exceptions
    from google.protobuf.json_format import ParseError

    error = getattr(error, "cause", None) or error  # the last error, if retried until the time limit
    read_in = [
        frame
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == exceptions.__file__ and "response" in frame.f_locals
    ]
    if isinstance(error, ParseError):
        status = 200
    elif isinstance(error, AttributeError | TypeError) and read_in:
        status = int(read_in[-1].f_locals["response"].status_code)
    else:
        return None
    told = "the answer is not in the form of the API's, but of a proxy or gateway before it, or of a login"
    return exceptions.from_http_status(status, told)


@contextmanager
def odd_answers_as_errors() -> Iterator[None]:
    """Raise an answer that a client cannot read as one of its own errors, of the answer's status.

    Raises:
        GoogleAPICallError: see `odd_answer`.
    """
    try:
        yield
    except Exception as error:
        if (told := odd_answer(error)) is not None:
            raise told from error
        raise


def certificate_refused(error: BaseException) -> str:
    """Return why a certificate cannot be verified, within an error of a client; "" if that is not its cause.

    Nothing was sent then.
    """
    left, seen = [error], set[int]()
    while left:
        each = left.pop()
        if isinstance(each, ssl.SSLCertVerificationError):
            return str(getattr(each, "verify_message", "") or each.args[-1] or "no reason was given")
        seen.add(id(each))
        within = (*each.args, getattr(each, "reason", None), each.__cause__)
        left += [other for other in within if isinstance(other, BaseException) and id(other) not in seen]
    return ""


def says_nothing_about_credentials(error: Exception) -> bool:
    """Return True if an error of google.auth is one of the network or of the server that gives tokens."""
    from google.auth.exceptions import GoogleAuthError, TransportError

    return isinstance(error, TransportError) or (isinstance(error, GoogleAuthError) and error.retryable)
