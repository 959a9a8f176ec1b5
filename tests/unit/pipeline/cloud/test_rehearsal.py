"""What a container of a rehearsal sees of this machine."""

import sys
from pathlib import Path

from pipeline.cloud.rehearsal import container_environment


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
