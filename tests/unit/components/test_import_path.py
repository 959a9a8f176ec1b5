"""PYTHONPATH of the processes that run our modules."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.components import import_path as module
from slipway.components.import_path import import_path


def test_users_folders_come_before_ours_each_once(tmp_path):
    inherited = os.pathsep.join(["/mine", "", "/mine", "/more"])
    found = import_path(tmp_path, inherited=inherited, first=[Path("/first")])
    assert found.split(os.pathsep) == ["/first", "/mine", "/more", str(tmp_path)]


def test_another_slipway_comes_after_ours(tmp_path):
    other = tmp_path / "other"
    Path(other, "slipway").mkdir(parents=True)
    Path(other, "slipway", "__init__.py").touch()
    found = import_path(tmp_path / "ours", inherited=os.pathsep.join([str(other), "/mine"]))
    assert found.split(os.pathsep) == ["/mine", str(tmp_path / "ours"), str(other)]


def test_without_folders_of_the_user_it_is_ours_alone(tmp_path):
    assert import_path(tmp_path, inherited="") == str(tmp_path)


@pytest.mark.parametrize(("is_same_python", "found"), [(False, True), (True, False)])
def test_another_interpreter_finds_an_installed_slipway_and_none_of_its_packages(
    monkeypatch, project, tmp_path, is_same_python, found
):
    monkeypatch.setattr(module, "IS_CHECKOUT", False)
    monkeypatch.setattr(module, "OWN_FOLDER", project / "slipway")  # as it lies in an environment
    monkeypatch.setattr(module, "_folder_of_the_link", module._folder_of_the_link.__wrapped__)
    path = import_path(tmp_path, inherited="", is_same_python=is_same_python)
    command = "import sys; sys.exit(__import__('slipway.components.import_path') is None)"
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", command],
        env={"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == found, done.stderr
    for folder in path.split(os.pathsep)[1:]:
        assert [each.name for each in Path(folder).iterdir()] == ["slipway"]
