"""The commands that messages print are the ones that work."""

import sys
from pathlib import Path

import pytest

from slipway.pipeline.root import PROJECT_ROOT
from slipway.pipeline.terminal import invocation
from slipway.pipeline.terminal.invocation import CLOUD, command, same_command


@pytest.fixture
def called(monkeypatch, tmp_path):
    """As if local_runner.py had been called with an interpreter, in a folder; None: not on the PATH."""

    def call(interpreter, *, script="local_runner.py", on_path=None):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [script])
        monkeypatch.setattr(sys, "executable", interpreter)
        monkeypatch.setattr(invocation.shutil, "which", {"python": on_path}.get)

    return call


def test_environment_of_the_project_is_named_from_here(called, tmp_path):
    called(f"{tmp_path}/.venv/bin/python")
    assert command("resume", "run-1") == ".venv/bin/python local_runner.py resume run-1"


def test_activated_environment_is_just_python(called, tmp_path):
    called(f"{tmp_path}/.venv/bin/python", on_path=f"{tmp_path}/.venv/bin/python")
    assert command("runs") == "python local_runner.py runs"


def test_interpreter_from_elsewhere_keeps_its_path(called):
    called("/opt/python/bin/python3", script="/srv/slip way/local_runner.py")
    assert command("runs") == "/opt/python/bin/python3 '/srv/slip way/local_runner.py' runs"


def test_output_folder_is_named_unless_it_is_the_projects_own_wherever_one_is(called, tmp_path):
    called("/usr/bin/python3")
    assert command("runs", output=PROJECT_ROOT / "output").endswith(" runs")
    assert command("runs", output=tmp_path / "output").endswith(f" runs --output {tmp_path}/output")
    assert command("runs", output=Path("/my data")).endswith(" runs --output '/my data'")


def test_command_of_the_other_program_lies_beside_the_one_that_runs(called):
    called("/opt/python/bin/python3", script="/srv/slip way/cloud_runner.py")
    assert command("runs") == "/opt/python/bin/python3 '/srv/slip way/local_runner.py' runs"
    assert command("cancel", "r", program=CLOUD).endswith("'/srv/slip way/cloud_runner.py' cancel r")
    assert same_command() == "/opt/python/bin/python3 '/srv/slip way/cloud_runner.py'"


def test_notebook_names_the_plain_command(called):
    called("/usr/bin/python3", script="ipykernel_launcher.py")
    assert command("runs") == "python local_runner.py runs"
