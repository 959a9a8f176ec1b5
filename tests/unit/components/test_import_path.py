"""PYTHONPATH of the processes that run our modules."""

import os
from pathlib import Path

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
