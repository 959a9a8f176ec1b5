"""Where the user's own modules come from."""

import sys
import sysconfig
from types import ModuleType

from slipway.pipeline.wiring.import_folders import import_folders


def test_folders_of_the_path_count_and_installed_ones_do_not(tmp_path, monkeypatch):
    for name in ("src", "venv/lib/python3/site-packages"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    standard = sysconfig.get_path("stdlib")
    path = ["", "src", str(tmp_path / "gone"), str(tmp_path / "venv/lib/python3/site-packages"), standard]
    monkeypatch.setattr(sys, "path", [*path, f"{standard}/lib-dynload"])
    assert import_folders() == [tmp_path, tmp_path / "src"]


def test_package_that_is_installed_editable_counts_where_its_sources_are(tmp_path, monkeypatch):
    (tmp_path / "src" / "mine").mkdir(parents=True)
    module = ModuleType("__editable___mine_finder")
    module.MAPPING = {"mine": str(tmp_path / "src" / "mine")}
    finder = type("_EditableFinder", (), {"__module__": module.__name__})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [finder])
    assert import_folders() == [tmp_path / "src"]
