"""Which errors of Google's clients may pass."""

import ssl

import pytest
from installed import needed

from slipway.components.google_retries import (
    certificate_refused,
    may_pass,
    passing_errors,
    says_nothing_about_credentials,
)

needed("google.api_core", reason="Google's clients are not installed")


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_answers_that_may_pass(code):
    from google.api_core.exceptions import from_http_status

    assert isinstance(from_http_status(code, "later"), passing_errors())


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 412])
def test_answers_that_stay(code):
    from google.api_core.exceptions import from_http_status

    assert not isinstance(from_http_status(code, "no"), passing_errors())


def test_connections_that_fail_may_pass():
    from google.auth.exceptions import RefreshError, TransportError
    from requests.exceptions import ChunkedEncodingError, ConnectionError, InvalidURL, ReadTimeout

    for kind in (ChunkedEncodingError, ConnectionError, ReadTimeout, TransportError):
        assert issubclass(kind, passing_errors()), kind
    for kind in (InvalidURL, RefreshError):
        assert not issubclass(kind, passing_errors()), kind


def tls(inner):
    """The error of requests, as urllib3's and ssl's own lie within it."""
    from requests.exceptions import SSLError
    from urllib3.exceptions import MaxRetryError
    from urllib3.exceptions import SSLError as Urllib3Error

    return SSLError(MaxRetryError(None, "/", Urllib3Error(inner)))


def test_certificate_that_cannot_be_verified_does_not_pass():
    from google.auth.exceptions import TransportError

    refused = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    refused.verify_message = "self-signed certificate"
    through_google = TransportError(tls(refused))
    through_google.__cause__ = tls(refused)
    for error in (tls(refused), through_google):
        assert certificate_refused(error) == "self-signed certificate"
        assert isinstance(error, passing_errors())
        assert not may_pass(error)
    cut = tls(ssl.SSLEOFError(8, "EOF occurred in violation of protocol"))
    assert certificate_refused(cut) == ""
    assert may_pass(cut), "cut off later"
    assert may_pass(TransportError("Failed to resolve"))
    assert not may_pass(ValueError())


def test_network_and_a_token_server_out_of_order_say_nothing_about_credentials():
    from google.auth.exceptions import RefreshError, TransportError

    assert says_nothing_about_credentials(TransportError("Failed to resolve"))
    assert says_nothing_about_credentials(RefreshError("internal_failure", retryable=True))
    assert not says_nothing_about_credentials(RefreshError("invalid_grant: Bad Request"))
    assert not says_nothing_about_credentials(ValueError())
