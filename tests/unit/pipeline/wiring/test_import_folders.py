"""Where the user's own modules come from."""

import os
import sys
import sysconfig
from types import ModuleType

import pytest

from slipway.pipeline.wiring.import_folders import import_folders


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch):
    """No folder that the tests' own environment names."""
    monkeypatch.delenv("PYTHONPATH", raising=False)


def test_folders_of_the_path_count_and_installed_ones_do_not(tmp_path, monkeypatch):
    for name in ("src", "venv/lib/python3/site-packages"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    standard = sysconfig.get_path("stdlib")
    path = ["", "src", str(tmp_path / "gone"), str(tmp_path / "venv/lib/python3/site-packages"), standard]
    monkeypatch.setattr(sys, "path", [*path, f"{standard}/lib-dynload"])
    assert import_folders() == [tmp_path, tmp_path / "src"]


def test_folder_that_the_environment_has_come_to_name_counts_once(tmp_path, monkeypatch):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "old")])
    named = ["", f"{tmp_path}/new", f"{tmp_path}/old", f"{tmp_path}/gone"]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(named))
    assert import_folders() == [tmp_path / "old", tmp_path / "new"]


def test_package_that_is_installed_editable_counts_where_its_sources_are(tmp_path, monkeypatch):
    (tmp_path / "src" / "mine").mkdir(parents=True)
    module = ModuleType("__editable___mine_finder")
    module.MAPPING = {"mine": str(tmp_path / "src" / "mine")}
    finder = type("_EditableFinder", (), {"__module__": module.__name__})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [finder])
    assert import_folders() == [tmp_path / "src"]
