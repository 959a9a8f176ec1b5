"""Says which errors of Google's clients may pass, so that the same request may be repeated."""

import ssl

TRUST = "behind a proxy, set REQUESTS_CA_BUNDLE to the file of the certificates, as PEM, that have signed it"
"""The remedy for a certificate that cannot be verified."""


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
    return isinstance(error, passing_errors()) and not certificate_refused(error)


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
