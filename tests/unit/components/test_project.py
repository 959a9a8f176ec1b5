"""The project is the nearest folder that says so; in a checkout, the checkout."""

import os
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize(
    ("mode", "owner", "is_found"),
    [(0o1777, 1234, False), (0o1777, 0, True), (0o1777, os.geteuid(), True), (0o775, 1234, True)],
    ids=["another's in /tmp", "root's", "one's own", "another's where not everybody may write"],
)
def test_project_that_anybody_may_have_put_above_is_passed_over(monkeypatch, tmp_path, mode, owner, is_found):
    below = tmp_path / "shared" / "mine"
    below.mkdir(parents=True)
    below.parent.chmod(mode)
    (below.parent / "pyproject.toml").write_text("[tool.slipway]\n")

    def of_owner(path):
        found = os.lstat(path)
        return os.stat_result([*found[:4], owner, *found[5:]])

    monkeypatch.setattr(Path, "lstat", of_owner)
    assert find_project(below) == (below.parent if is_found else None)


@pytest.mark.parametrize("is_named", [True, False])
def test_installed_slipway_takes_the_named_project_or_the_one_around(monkeypatch, tmp_path, is_named):
    monkeypatch.setattr(module, "IS_CHECKOUT", False)
    (tmp_path / "pyproject.toml").write_text("[tool.slipway]\n")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.delenv(module.PROJECT_VARIABLE, raising=False)
    if is_named:
        monkeypatch.setenv(module.PROJECT_VARIABLE, "/opt/slipway")
    found = module._project_root()
    assert str(found) == ("/opt/slipway" if is_named else str(tmp_path))


def test_project_that_is_named_from_the_current_folder_is_the_same_from_any_other(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(module.PROJECT_VARIABLE, "../mine")
    assert module._project_root() == tmp_path.parent / "mine"


def test_outside_of_any_project_it_is_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(module.PROJECT_VARIABLE, raising=False)
    monkeypatch.setattr(module, "IS_CHECKOUT", False)
    monkeypatch.setattr(module, "find_project", lambda _: None)  # wherever the folder for tests is
    monkeypatch.chdir(tmp_path)
    assert module._project_root() == tmp_path


def test_folder_that_is_gone_is_no_project(project, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    look = (
        "import os, slipway.components.project as p\n"
        f"os.rmdir({str(gone)!r}); p.IS_CHECKOUT = False; print(p._project_root())"
    )
    kept = {name: value for name, value in os.environ.items() if name != module.PROJECT_VARIABLE}
    environment = {**kept, "PYTHONPATH": str(project)}
    told = subprocess.check_output([sys.executable, "-c", look], cwd=gone, env=environment, text=True)
    assert told == "/\n"


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """As if Slipway were installed, with a RECORD of these lines."""
    folder = tmp_path / "slipway-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: slipway\nVersion: 0.1.0\n")
    monkeypatch.setattr(module, "IS_CHECKOUT", False)
    monkeypatch.syspath_prepend(tmp_path)

    def call(*lines):
        (folder / "RECORD").write_text("\n".join(lines) + "\n")
        return installed_version()["slipway"]

    return call


def test_wheel_that_was_built_anew_counts_as_another_one(installed):
    before = installed("slipway/run.py,sha256=aa,10", "slipway/plan.py,sha256=bb,10")
    assert before.startswith("0.1.0 (")
    assert installed("slipway/run.py,sha256=cc,10", "slipway/plan.py,sha256=bb,10") != before


def test_same_wheel_is_the_same_in_any_environment(installed):
    before = installed("slipway/run.py,sha256=aa,10", "slipway/plan.py,sha256=bb,10")
    assert before == installed(
        "../../../bin/slipway,sha256=dd,200",
        "slipway/__pycache__/run.cpython-311.pyc,,",
        "slipway/plan.py,sha256=bb,10",
        "slipway/run.py,sha256=aa,10",
        "slipway-0.1.0.dist-info/INSTALLER,sha256=ee,4",
    )
