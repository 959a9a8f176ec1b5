"""The commands that messages print are the ones that work."""

import sys
from pathlib import Path

import pytest

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.terminal import invocation
from slipway.pipeline.terminal.invocation import (
    CLOUD,
    command,
    default_workload,
    image_command,
    program_name,
    same_command,
)


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


def test_installed_command_is_the_one_to_type(called, monkeypatch):
    called("/env/bin/python3", script="/env/bin/slipway")
    monkeypatch.setattr(invocation.shutil, "which", {"slipway": "/env/bin/slipway"}.get)
    monkeypatch.setattr(sys, "argv", ["/env/bin/slipway", "run", "my wine"])
    assert command("runs") == "slipway runs"
    assert command("cancel", "r", program=CLOUD) == "slipway cloud cancel r"
    assert same_command() == "slipway run 'my wine'"
    assert program_name() == "slipway"


def test_installed_command_that_is_not_on_the_path_is_named_by_its_own(called, tmp_path):
    called(f"{tmp_path}/.venv/bin/python", script=f"{tmp_path}/.venv/bin/slipway")
    assert command("runs") == ".venv/bin/slipway runs"


def test_installed_slipway_names_its_command_in_notebooks_too(called, monkeypatch, tmp_path):
    monkeypatch.setattr(invocation, "IS_CHECKOUT", False)
    called(f"{tmp_path}/.venv/bin/python", script="ipykernel_launcher.py")
    assert command("runs") == ".venv/bin/python -m slipway runs"
    assert program_name() == "slipway"


def test_link_to_the_installed_command_is_what_was_called(called, tmp_path):
    called("/opt/pipx/bin/python", script=f"{tmp_path}/bin/slipway")
    assert command("runs") == "bin/slipway runs"


@pytest.mark.parametrize(
    ("on_path", "expected"),
    [("/env/bin/slipway", "slipway"), ("/other/bin/slipway", "/env/bin/python -m slipway")],
)
def test_module_of_an_interpreter_is_its_command_where_that_is_on_the_path(
    called, monkeypatch, on_path, expected
):
    called("/env/bin/python", script="slipway")
    monkeypatch.setattr(invocation.shutil, "which", {"slipway": on_path}.get)
    assert command("runs") == f"{expected} runs"


@pytest.mark.parametrize(
    ("is_checkout", "words", "expected"),
    [
        (True, {}, "make image"),
        (True, {"image": "r/i:1", "target": "training-tpu"}, "make image IMAGE=r/i:1 TARGET=training-tpu"),
        (False, {}, "docker build --tag NAME:TAG ."),
        (False, {"image": "r/i:1", "target": "t"}, "docker build --tag r/i:1 --target t ."),
    ],
)
def test_image_is_built_by_make_only_where_there_is_a_makefile(monkeypatch, is_checkout, words, expected):
    monkeypatch.setattr(invocation, "IS_CHECKOUT", is_checkout)
    assert image_command(**words) == expected


def test_documents_name_the_runner_of_a_checkout(called):
    called("/opt/python/bin/python3", script="/srv/local_runner.py")
    assert program_name() == "python local_runner.py"


def test_workload_where_none_is_named_is_taxi_or_the_only_one(tmp_path):
    def add(name):
        (tmp_path / "workloads" / name).mkdir(parents=True)
        (tmp_path / "workloads" / name / "workload.yaml").touch()
        return Path("workloads", name, "workload.yaml")

    assert default_workload(tmp_path) == Path()
    wine = add("wine")
    assert default_workload(tmp_path) == wine
    add("pets")
    assert default_workload(tmp_path) == Path()
    taxi = add("taxi")
    assert default_workload(tmp_path) == taxi
