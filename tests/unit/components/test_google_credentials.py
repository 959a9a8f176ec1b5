import traceback
from functools import partial

import pytest

from slipway.components.errors import ComponentError
from slipway.components.google_credentials import check_proxy, find_credentials
from slipway.components.ingest.google_objects import list_objects


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "was not found"),
        ("{", "not a valid json file"),
        ("[]", "AttributeError"),
        ("folder", "Is a directory"),
    ],
)
def test_file_that_the_variable_names_is_named_where_it_gives_none(monkeypatch, tmp_path, content, reason):
    """`gcloud auth` alone would not help: the variable goes first."""
    file = tmp_path / "key.json"
    if content == "folder":
        file.mkdir()
    elif content is not None:
        file.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    with pytest.raises(
        ComponentError, match=f"GOOGLE_APPLICATION_CREDENTIALS names {file}.*{reason}"
    ) as caught:
        find_credentials("Cloud Storage")
    assert "unset it" in caught.value.hint


@pytest.mark.parametrize("key", ['{"private_key": "c2VjcmV0"}', "c2VjcmV0" * 100], ids=["as it is", "base64"])
def test_key_in_place_of_the_path_of_its_file_is_not_repeated(monkeypatch, key):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", key)
    with pytest.raises(ComponentError, match="does not hold the path of a file, so there are") as caught:
        find_credentials("push.endpoint")
    told = "".join(traceback.format_exception(caught.value))
    assert "c2VjcmV0" not in f"{caught.value.message} {caught.value.hint} {told}"


def test_server_of_tokens_that_does_not_answer_is_no_matter_of_the_credentials(monkeypatch):
    from google.auth.exceptions import TransportError

    class Credentials:
        def refresh(self, request):
            raise TransportError("Failed to resolve 'oauth2.googleapis.com'")

    monkeypatch.setattr("google.auth.default", lambda scopes: (Credentials(), "p"))
    with pytest.raises(
        ComponentError, match="gives tokens of Google Cloud, for Cloud Storage, does not"
    ) as no:
        find_credentials("Cloud Storage")
    assert "network" in no.value.hint


@pytest.mark.parametrize(
    "error", [TypeError("string indices"), KeyError("expires_in"), ValueError("no JSON")]
)
def test_page_in_place_of_a_token_is_told(monkeypatch, error):
    class Credentials:
        def refresh(self, request):
            raise error

    monkeypatch.setattr("google.auth.default", lambda scopes: (Credentials(), "p"))
    with pytest.raises(ComponentError, match="Google Cloud, for Cloud Storage, answers with no token"):
        find_credentials("Cloud Storage")


def test_damaged_file_of_gcloud_is_no_matter_of_the_network(monkeypatch):
    def damaged(scopes):
        raise AttributeError("'list' object has no attribute 'get'")

    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setattr("google.auth.default", damaged)
    with pytest.raises(ComponentError, match=r"no credentials for Cloud Storage .* gcloud's file") as no:
        find_credentials("Cloud Storage")
    assert "gcloud auth application-default login" in no.value.hint


def test_file_of_credentials_that_is_no_object_is_told_by_those_who_open_a_bucket(monkeypatch, tmp_path):
    pytest.importorskip("google.cloud.storage")
    from slipway.components.pusher.google_folder import Folder

    (tmp_path / "key.json").write_text("[]")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    with pytest.raises(ComponentError, match=r"key\.json, which gives no credentials for Cloud Storage"):
        Folder("gs://bucket/models")


@pytest.mark.parametrize("proxy", ["http://me:c2Vj/1@proxy:3128", "http://me:1#c2Vj@proxy:3128"])
def test_proxy_whose_password_is_not_escaped_is_told_without_any_of_it(monkeypatch, proxy):
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("https_proxy", proxy)
    for ask in (partial(find_credentials, "Vertex AI"), partial(list_objects, "gs://b/*.csv")):
        with pytest.raises(ComponentError, match="proxy in https_proxy must look like http://USER") as caught:
            ask()
        assert "%2F" in caught.value.hint
        assert "c2Vj" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("proxy", ["", "http://me:c2%2Fj@proxy:3128", "proxy:3128", "socks5h://proxy"])
def test_proxy_with_an_address_is_let_through(monkeypatch, proxy):
    monkeypatch.setenv("https_proxy", proxy)
    check_proxy()
