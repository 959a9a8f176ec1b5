"""What a rehearsed task sees of this machine's variables."""

import sys
from pathlib import Path

from slipway.pipeline.cloud.rehearsal.container_environment import container_environment, from_outside


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
