"""Says which errors of Google's clients may pass, so that the same request may be repeated."""


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


def says_nothing_about_credentials(error: Exception) -> bool:
    """Return True if an error of google.auth is one of the network or of the server that gives tokens."""
    from google.auth.exceptions import GoogleAuthError, TransportError

    return isinstance(error, TransportError) or (isinstance(error, GoogleAuthError) and error.retryable)
