"""Fixtures for all tests."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every CI run; at a desk, new ones each time.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

# Keras 3, as in every process of a run; importing tensorflow_transform would choose Keras 2 for all tests.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")

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


@pytest.fixture(scope="session")
def jax_python(project: Path) -> str:
    """The Python of the second environment."""
    python = project / ".venv-jax" / "bin" / "python"
    if not python.exists():
        if os.environ.get("CI"):
            pytest.fail("there is no .venv-jax; .ci/run makes it")
        pytest.skip("there is no .venv-jax: `make jax` makes it")
    return str(python)
