"""A test that hangs where no limit of pytest-timeout ends it."""

import subprocess
import sys

import pytest

CONFTEST = """
from watchdog import Watchdog

def pytest_configure(config):
    config.pluginmanager.register(Watchdog({margin_s}))
"""
FILE = """
import faulthandler
import os
import signal
import threading

import pytest

def test_that_hears_no_signal():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()

@pytest.fixture
def waited_for():
    yield
    threading.Event().wait()

def test_that_waits_as_it_ends(waited_for):
    threading.Event().wait()

@pytest.mark.timeout(60)  # however busy the machine is
def test_that_comes_after():
    pass

def test_that_passes():
    pass

@pytest.mark.timeout(60)
def test_that_forks():
    child = os.fork()
    if not child:
        faulthandler.cancel_dump_traceback_later()  # as Python does when it ends
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture
def run(project, tmp_path):
    """pytest on a test of FILE, with a limit of a second."""
    (tmp_path / "test_it.py").write_text(FILE, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {project}/tests/support\ntimeout = 1\n")

    def call(*words, margin_s=1):
        (tmp_path / "conftest.py").write_text(CONFTEST.format(margin_s=margin_s), encoding="utf-8")
        left_out = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:anyio")
        command = [sys.executable, "-m", "pytest", *left_out, *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return call


@pytest.mark.parametrize("name", ["test_that_hears_no_signal", "test_that_waits_as_it_ends"])
def test_it_is_ended_with_its_stack_and_named_and_the_others_run(run, name):
    finished = run("-n1", "-k", f"{name} or comes_after")
    assert finished.returncode == 1
    assert f"crashed while running 'test_it.py::{name}'" in finished.stdout
    assert "1 passed" in finished.stdout
    assert "Timeout (0:00:02)!" in finished.stderr
    assert 'test_it.py", line' in finished.stderr


def test_without_workers_the_process_ends_with_the_stack(run):
    finished = run("-k", "signal")
    assert finished.returncode == 1
    assert "in test_that_hears_no_signal" in finished.stderr


def test_whoever_forks_or_has_no_limit_is_left_alone(run):
    finished = run("-k", "forks or comes_after", margin_s=60)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert run("--timeout=0", "-k", "passes", margin_s=0.001).returncode == 0
