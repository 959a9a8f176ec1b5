"""What is said where S3 or Azure cannot be used: the address, the reason, the remedy, and never a key."""

import os
import sys

import pytest

from slipway.components import s3_and_azure_store
from slipway.components.errors import ComponentError
from slipway.components.s3_and_azure_store import VARIABLES, open_store, refusal, words_of


@pytest.fixture(autouse=True)
def _environment_without_account(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(s3_and_azure_store, "_used_in", set())


def test_missing_package_is_named_with_the_command_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ComponentError) as caught:
        open_store("s3://b/x")
    assert caught.value.message == "s3://b/x needs the package obstore, which is not installed."
    assert caught.value.hint == "pip install 'obstore>=0.12,<0.13' (the extra `stores`)"


def test_missing_account_is_told_before_any_request():
    with pytest.raises(ComponentError, match="the environment holds no credentials") as caught:
        open_store("az://b/x")
    assert "AZURE_STORAGE_ACCOUNT_NAME" in caught.value.hint


def test_address_without_tls_is_refused_unless_it_is_allowed(monkeypatch):
    import obstore

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    with pytest.raises(s3_and_azure_store.failures()) as caught:
        obstore.head(open_store("s3://b"), "x")
    told = refusal("s3://b/x", caught.value)
    assert "an address that is not encrypted" in told.message
    assert "AWS_ALLOW_HTTP=true" in told.hint


@pytest.mark.parametrize(
    ("address", "name"), [("s3://b", "AWS_ENDPOINT_URL"), ("az://b", "AZURE_STORAGE_ENDPOINT")]
)
def test_endpoint_with_a_password_is_refused_without_naming_it(monkeypatch, address, name):
    monkeypatch.setenv(name, "https://key:hidden@store")
    with pytest.raises(ComponentError, match=f"{name} holds a user or a password") as caught:
        open_store(address)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("s3://b", "AWS_ACCESS_KEY_ID"),
        ("s3://b", "AWS_SESSION_TOKEN"),
        ("minio://b", "AWS_SECRET_ACCESS_KEY"),
        ("az://b", "AZURE_STORAGE_ACCOUNT_KEY"),
    ],
)
@pytest.mark.parametrize("value", ["hidden\n", "hidden\r", "hiddän"])
def test_key_that_no_header_can_hold_is_refused_without_naming_it(monkeypatch, address, name, value):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    with pytest.raises(ComponentError, match=f"{name} holds a line break or another letter") as caught:
        open_store(address)
    assert "hidd" not in str(caught.value)


def test_process_forked_from_one_that_used_a_store_is_refused_rather_than_left_waiting(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    open_store("s3://b")
    child = os.fork()
    if not child:
        try:
            open_store("s3://b")
        except ComponentError as error:
            os._exit(7 if "forked" in error.message else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


ANSWER = """Generic S3 error: Error performing GET http://h/b?sig=hidden in 8 ms - \
Server returned non-2xx status code: {}: <?xml version="1.0"?>
<Error><Code>{}</Code><Message>What the
store says</Message></Error>

Debug source:
Generic {{ uri: "http://h/b?sig=hidden" }}"""


@pytest.mark.parametrize(
    ("answer", "message", "hint"),
    [
        (ANSWER.format(404, "NoSuchBucket"), "s3://b/x: there is no bucket 'b'.", "create it"),
        (
            ANSWER.format(403, "AccessDenied"),
            "s3://b/x: permission denied: AccessDenied: What the store says",
            "s3:ListBucket",
        ),
        (ANSWER.format(403, "InvalidAccessKeyId"), "s3://b/x: the credentials do not work", "AWS_REGION"),
        (
            ANSWER.format(400, "ExpiredToken"),
            "s3://b/x: the credentials do not work: Exp",
            "AWS_ACCESS_KEY_ID",
        ),
        (
            "Error performing token request: status code: 401: invalid_client",
            "s3://b/x: the credentials do not work",
            "AWS_ACCESS_KEY_ID",
        ),
        (
            "Generic S3 error: Error performing PUT http://h/b - Received redirect without LOCATION, this",
            "s3://b/x: the bucket is in another region.",
            "set AWS_REGION",
        ),
        (
            'Encountered object with invalid path: Path "a//x" contained empty path segment',
            "s3://b/x: 'a//x' cannot be read",
            "rename or remove",
        ),
        (
            'Encountered object with invalid path: Error parsing Path "d/a\nx": Encountered illegal',
            r"s3://b/x: 'd/a\nx' cannot be read",
            "rename or remove",
        ),
        (ANSWER.format(503, "SlowDown"), "s3://b/x cannot be used: SlowDown", "try again"),
        (
            "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 1 ms",
            "s3://b/x: the environment holds no credentials.",
            "AWS_SECRET_ACCESS_KEY",
        ),
    ],
)
def test_refusal_names_address_reason_and_remedy(answer, message, hint):
    told = refusal("s3://b/x", RuntimeError(answer))
    assert told.message.startswith(message)
    assert hint in told.hint
    assert "hidden" not in str(told)


def test_words_of_an_error_are_one_line_without_the_queries_of_addresses():
    error = RuntimeError(
        "Error performing GET https://h/c/x?sv=1&sig=hidden in 3 ms\n  - timed out\n\nDebug source:\n x"
    )
    assert words_of(error) == "Error performing GET https://h/c/x in 3 ms - timed out"
    assert words_of(RuntimeError("GET https://key:hidden@h/c@d")) == "GET https://h/c@d"


def test_wrong_region_is_final():
    from obstore.exceptions import GenericError

    assert s3_and_azure_store.is_passing(GenericError("timed out"))
    assert not s3_and_azure_store.is_passing(GenericError("Received redirect without LOCATION"))


def test_minio_is_opened_at_an_endpoint_that_is_named_and_never_at_amazon_s(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with pytest.raises(
        ComponentError, match=r"minio://b/x: the environment does not name its endpoint"
    ) as caught:
        open_store("minio://b/x")
    assert "set AWS_ENDPOINT_URL" in caught.value.hint
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://store.example")
    assert open_store("minio://b/x") is not None
    assert refusal("minio://b/x", OSError("NoSuchBucket")).message == "minio://b/x: there is no bucket 'b'."


def test_variables_are_those_that_the_page_names(project):
    page = (project / "docs/data.md").read_text()
    assert [name for names in VARIABLES.values() for name in names if f"`{name}`" not in page] == [
        *("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP"),  # with their value
    ]
    assert "`AWS_ALLOW_HTTP=true`" in page
    assert "`AZURE_ALLOW_HTTP=true`" in page
