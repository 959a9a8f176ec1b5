"""Which errors of Google's clients may pass."""

import ssl
from types import SimpleNamespace

import pytest
from installed import needed

from slipway.components.google_retries import (
    certificate_refused,
    may_pass,
    odd_answer,
    odd_answers_as_errors,
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


ODD = [
    *({"error": each} for each in ("upstream timed out", None, [], {"details": ["x"]}, {"details": 7})),
    "no",
    7,
]


def read(status, payload):
    """Read an error answer as the client does."""
    from google.api_core.exceptions import from_http_response

    request = SimpleNamespace(method="POST", url="https://there/v1/x")
    raise from_http_response(SimpleNamespace(status_code=status, request=request, json=lambda: payload))


@pytest.mark.parametrize("payload", ODD)
def test_answer_of_a_gateway_is_an_error_of_its_status(payload):
    from google.api_core.exceptions import BadGateway, Forbidden, RetryError

    with pytest.raises(BadGateway, match="not in the form of the API's"), odd_answers_as_errors():
        read(502, payload)
    with pytest.raises(Forbidden), odd_answers_as_errors():
        read(403, payload)
    for status, passes in ((502, True), (429, True), (403, False)):
        with pytest.raises((AttributeError, TypeError)) as caught:
            read(status, payload)
        assert may_pass(caught.value) == passes
        assert odd_answer(RetryError("Timeout", caught.value)).code == status


def test_page_in_place_of_an_answer_is_an_error_and_stays():
    from google.api_core.exceptions import GoogleAPICallError
    from google.protobuf.json_format import Parse
    from google.protobuf.struct_pb2 import Struct

    with pytest.raises(GoogleAPICallError, match="of a login") as caught, odd_answers_as_errors():
        Parse("<html>", Struct())
    assert not may_pass(caught.value)


def test_error_of_the_api_and_a_fault_elsewhere_are_left_as_they_are():
    with pytest.raises(AttributeError), odd_answers_as_errors():
        "text".get("message")
    from google.api_core.exceptions import NotFound

    with pytest.raises(NotFound, match="no such model") as caught, odd_answers_as_errors():
        read(404, {"error": {"message": "no such model"}})
    assert odd_answer(caught.value) is None


def test_cloud_storage_asks_again_by_the_status_of_an_answer_of_a_gateway():
    from slipway.components.pusher.google_folder import Folder

    asked = []

    def ask(*answers):
        asked.append(answers[min(len(asked), len(answers) - 1)])
        return read(*asked[-1]) if asked[-1] else "done"

    retry = Folder.__new__(Folder)._retry().with_delay(initial=0.001, maximum=0.001)
    assert (
        retry(ask)((502, {"error": "upstream timed out"}), (503, {"error": {"message": "soon"}}), ())
        == "done"
    )
    assert len(asked) == 3
    asked.clear()
    with pytest.raises(AttributeError):
        retry(ask)((403, {"error": "no"}))
    assert len(asked) == 1
