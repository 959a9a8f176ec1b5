"""Which errors of Google's clients may pass."""

import pytest
from installed import needed

from slipway.components.google_retries import passing_errors, says_nothing_about_credentials

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


def test_network_and_a_token_server_out_of_order_say_nothing_about_credentials():
    from google.auth.exceptions import RefreshError, TransportError

    assert says_nothing_about_credentials(TransportError("Failed to resolve"))
    assert says_nothing_about_credentials(RefreshError("internal_failure", retryable=True))
    assert not says_nothing_about_credentials(RefreshError("invalid_grant: Bad Request"))
    assert not says_nothing_about_credentials(ValueError())
