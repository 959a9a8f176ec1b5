"""What a rehearsed task sees of this machine's variables."""

import sys
from pathlib import Path

import pytest

from slipway.pipeline.cloud.rehearsal.container_environment import (
    container_environment,
    from_outside,
    names_loopback,
)


def test_container_has_the_image_s_variables_and_only_the_way_to_the_world_of_ours(tmp_path):
    here = {
        "MY_SECRET": "x",
        "PYTHONPATH": "/mine",
        "HOME": "/home/me",
        "GOOGLE_APPLICATION_CREDENTIALS": "/key.json",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:8",
    }
    found = container_environment(here, staged=tmp_path, home=tmp_path / "home")
    assert "MY_SECRET" not in found
    assert found["PYTHONPATH"] == str(tmp_path)
    # The image's is /tmp, which belongs to all users here: Python would run what lies in its .local.
    assert found["HOME"] == str(tmp_path / "home")
    assert found["PATH"].startswith(str(Path(sys.executable).parent))
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST", "https_proxy"):
        assert found[name] == here[name]


def test_an_account_is_looked_for_in_the_home_folder_if_there_is_one(tmp_path, monkeypatch):
    def nameless(_):
        raise KeyError("uid not found")

    monkeypatch.setattr("pwd.getpwuid", nameless)
    monkeypatch.setenv("HOME", "/home/me")
    assert (
        container_environment({}, staged=tmp_path, home=tmp_path)["CLOUDSDK_CONFIG"]
        == "/home/me/.config/gcloud"
    )
    monkeypatch.delenv("HOME")
    assert container_environment({}, staged=tmp_path, home=tmp_path)["CLOUDSDK_CONFIG"] == "~/.config/gcloud"


def test_variables_that_are_the_users_own_count_as_they_are_here_where_they_are_set(tmp_path):
    here, names = {"TF_USE_LEGACY_KERAS": "1"}, ("TF_USE_LEGACY_KERAS", "KERAS_BACKEND")
    found = container_environment(here, staged=tmp_path, home=tmp_path, own=names)
    assert [found[name] for name in names] == ["1", "tensorflow"], "what is not set is the image's"
    assert container_environment(here, staged=tmp_path, home=tmp_path)["TF_USE_LEGACY_KERAS"] == "0"


def test_an_image_keeps_its_own_certificates_and_temporary_folder_but_learns_of_a_store_s():
    here = {
        "CURL_CA_BUNDLE": "/store.pem",
        "TMPDIR": "/mine",
        "SSL_CERT_FILE": "/mine.pem",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:9",
        "A": "1",
    }
    assert from_outside(here) == {
        "CURL_CA_BUNDLE": "/store.pem",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:9",
    }


@pytest.mark.parametrize(
    "value",
    ["http://127.0.0.1:9", "localhost:9", "http://me:word@localhost:3128/", "http://[::1]:9/b", "127.0.0.1"],
)
def test_what_listens_on_loopback_is_told_by_the_host_alone(value):
    assert names_loopback({"STORAGE_EMULATOR_HOST": value})
    assert not names_loopback({"no_proxy": value})


@pytest.mark.parametrize(
    "value", ["http://10.88.0.1:9", "/keys/localhost.json", "localhosts", "https://1270.0.0.1/"]
)
def test_a_host_or_a_path_that_only_looks_like_loopback_is_none(value):
    assert not names_loopback({"STORAGE_EMULATOR_HOST": value})


def test_a_store_s_variables_are_given_to_tasks_that_open_such_a_store_and_no_others(tmp_path):
    s3 = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_ALLOW_HTTP": "true"}
    azure = {"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:8", "AZURE_STORAGE_ACCOUNT_KEY": "hush"}
    here = {**s3, **azure, "AWS_PROFILE": "mine", "AZURE_CONFIG_DIR": "/mine"}
    assert from_outside(here) == {}
    assert from_outside(here, stores=("s3",)) == s3
    assert from_outside(here, stores=("az", "s3")) == {**s3, **azure}
    found = container_environment(here, staged=tmp_path, home=tmp_path, stores=("s3",))
    assert {name: value for name, value in found.items() if name.startswith(("AWS", "AZURE"))} == s3
