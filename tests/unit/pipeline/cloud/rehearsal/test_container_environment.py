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
    found = container_environment(here, staged=tmp_path)
    assert "MY_SECRET" not in found
    assert found["PYTHONPATH"] == str(tmp_path)
    assert found["HOME"] == "/tmp"  # noqa: S108  (the image's)
    assert found["PATH"].startswith(str(Path(sys.executable).parent))
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST", "https_proxy"):
        assert found[name] == here[name]


def test_variables_that_are_the_users_own_count_as_they_are_here_where_they_are_set(tmp_path):
    here, names = {"TF_USE_LEGACY_KERAS": "1"}, ("TF_USE_LEGACY_KERAS", "KERAS_BACKEND")
    found = container_environment(here, staged=tmp_path, own=names)
    assert [found[name] for name in names] == ["1", "tensorflow"], "what is not set is the image's"
    assert container_environment(here, staged=tmp_path)["TF_USE_LEGACY_KERAS"] == "0"


def test_an_image_keeps_its_own_certificates_and_temporary_folder():
    here = {
        "TMPDIR": "/mine",
        "SSL_CERT_FILE": "/mine.pem",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:9",
        "A": "1",
    }
    assert from_outside(here) == {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:9"}


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
