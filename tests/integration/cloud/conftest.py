"""Runs cloud_runner.py as a user does."""

import os
import sys
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
