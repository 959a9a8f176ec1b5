"""Runs cloud_runner.py as a user does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cloud_runner(project):
    """Runs `python cloud_runner.py ARGS...` of a project's folder, and waits for it."""

    def call(*args: str, cwd: Path = project, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "cloud_runner.py", *args],
            cwd=cwd,
            env={**os.environ, "CI": "true", **environment},
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )

    return call
