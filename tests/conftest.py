"""Fixtures for all tests."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent

Finished = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def project() -> Path:
    """The project's folder."""
    return PROJECT


@pytest.fixture(scope="session")
def local_runner() -> Callable[..., Finished]:
    """Runs `python local_runner.py ARGS...` as a user does, and waits for it."""

    def call(*args: str, cwd: Path = PROJECT, timeout_s: float = 300.0, **environment: str) -> Finished:
        return subprocess.run(
            [sys.executable, str(PROJECT / "local_runner.py"), *args],
            cwd=cwd,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return call
