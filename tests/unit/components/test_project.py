"""The project is the nearest folder that says so; in a checkout, the checkout."""

import os
import subprocess
import sys

import pytest

from slipway.components import project as module
from slipway.components.project import IS_CHECKOUT, OWN_FOLDER, PROJECT_ROOT, find_project, installed_version


def test_checkout_is_its_own_project_wherever_it_is_called(project):
    assert IS_CHECKOUT
    assert (project, project) == (OWN_FOLDER, PROJECT_ROOT)
    assert installed_version() == {}


def test_nearest_folder_with_the_table_is_found_from_below(tmp_path):
    for folder in (tmp_path, tmp_path / "inner"):
        folder.mkdir(exist_ok=True)
        (folder / "pyproject.toml").write_text('[project]\nname = "x"\n\n[tool.slipway]\n')
    below = tmp_path / "inner" / "workloads" / "wine"
    below.mkdir(parents=True)
    assert find_project(below) == tmp_path / "inner"
    assert find_project(tmp_path) == tmp_path


@pytest.mark.parametrize(
    "content",
    [b"", b'[project]\nname = "x"\n', b"# [tool.slipway]\n", b"\xff\xfe[tool.slipway]"],
    ids=["empty", "another's", "in a comment", "no text"],
)
def test_any_other_pyproject_makes_no_project(tmp_path, content):
    (tmp_path / "pyproject.toml").write_bytes(content)
    assert find_project(tmp_path) is None


@pytest.mark.parametrize("is_named", [True, False])
def test_installed_slipway_takes_the_named_project_or_the_one_around(monkeypatch, tmp_path, is_named):
    monkeypatch.setattr(module, "IS_CHECKOUT", False)
    (tmp_path / "pyproject.toml").write_text("[tool.slipway]\n")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    if is_named:
        monkeypatch.setenv(module.PROJECT_VARIABLE, "/opt/slipway")
    found = module._project_root()
    assert str(found) == ("/opt/slipway" if is_named else str(tmp_path))


def test_outside_of_any_project_it_is_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "IS_CHECKOUT", False)
    monkeypatch.chdir(tmp_path)
    assert module._project_root() == tmp_path


def test_folder_that_is_gone_is_no_project(project, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    look = (
        "import os, slipway.components.project as p\n"
        f"os.rmdir({str(gone)!r}); p.IS_CHECKOUT = False; print(p._project_root())"
    )
    environment = {**os.environ, "PYTHONPATH": str(project)}
    told = subprocess.check_output([sys.executable, "-c", look], cwd=gone, env=environment, text=True)
    assert told == "/\n"
