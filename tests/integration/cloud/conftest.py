"""Runs cloud_runner.py as a user does."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from called import called, forked_servers
from watched import Finished, run_watched


@pytest.fixture(scope="session")
def cloud_runner(project):
    """Runs `python cloud_runner.py ARGS...` of a project's folder, and waits; it listens on no port."""

    def call(*args: str, cwd: Path = project, **environment: str) -> Finished:
        finished = run_watched(
            [sys.executable, "cloud_runner.py", *args],
            cwd=cwd,
            env={**os.environ, "CI": "true", **environment},
            timeout_s=400,
        )
        assert finished.listeners == []
        return finished

    return call


@pytest.fixture(scope="session")
def cloud_here(project, request):
    """As `cloud_runner`, but called in this process, which imports TFX once for all that it compiles.

    The tasks of a rehearsal are forked from the warm process.
    """

    def call(*args: str, cwd: Path = project, **environment: str) -> Finished:
        with forked_servers(lambda: request.getfixturevalue("warm")):
            return called("cloud_runner", *args, cwd=cwd, environment={"CI": "true", **environment})

    return call


@pytest.fixture(scope="module")
def storage():
    """The variables with which Buildah and Podman keep everything in a folder of the test's.

    Its path is short: below one of 60 letters, each container was waited for 20 s after its end.
    """
    folder = Path(tempfile.mkdtemp(prefix="containers-"))
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n'
    )
    # No container may have more files or processes than whoever starts it, and not every machine has systemd.
    (folder / "containers.conf").write_text(
        f'[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\nevents_logger = "file"\n'
        f'tmp_dir = "{folder}/run/libpod"\n'
        '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n'
    )
    variables = {
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "CONTAINERS_CONF": str(folder / "containers.conf"),
    }
    yield variables
    for words in (["podman", "rm", "--force", "--all"], ["buildah", "rm", "--all"]):
        subprocess.run(words, env={**os.environ, **variables}, check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
