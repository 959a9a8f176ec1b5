"""The installed command works in a project, with TFX; without them it says what to do."""

import importlib
import os
import sys

import pytest

from slipway.pipeline.commands import enter_project as module
from slipway.pipeline.commands.enter_project import enter_project
from slipway.pipeline.errors import UsageError


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """A folder in no project, and nothing added to this process's path."""
    monkeypatch.setattr(module, "PROJECT_ROOT", tmp_path)
    monkeypatch.setenv(module.PROJECT_VARIABLE, "")  # and so restored
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


@pytest.mark.parametrize("words", [("init", "mine"), ("doctor",), ("run", "--help"), ("--help",)])
def test_some_commands_need_no_project(words):
    enter_project(words)


@pytest.mark.parametrize("words", [(), ("run",), ("cloud", "compile")])
def test_others_name_the_folder_that_is_in_none(here, words):
    with pytest.raises(UsageError, match=r"is in no project: .* \[tool.slipway\]") as refused:
        enter_project(words)
    assert str(here) in refused.value.message
    assert refused.value.hint == "go to your project's folder, or make one: slipway init my-project"


@pytest.mark.parametrize("is_named", [True, False])
def test_anothers_project_in_a_folder_for_everybody_is_entered_only_by_name(monkeypatch, here, is_named):
    (here / "pyproject.toml").write_text("[tool.slipway]\n")
    monkeypatch.setattr(module, "find_project", lambda _: None)
    monkeypatch.setenv(module.PROJECT_VARIABLE, str(here) if is_named else "")
    if is_named:
        enter_project(["run"])
        return
    with pytest.raises(UsageError, match=r"is another user's, in a folder that everybody may") as refused:
        enter_project(["run"])
    assert refused.value.hint == f"work elsewhere; if you trust it: export SLIPWAY_PROJECT={here}"
    assert str(here) not in sys.path


def test_modules_of_the_project_can_be_imported(here):
    (here / "pyproject.toml").write_text("[tool.slipway]\n")
    enter_project(["run"])
    assert sys.path[-1] == str(here)
    assert os.environ[module.PROJECT_VARIABLE] == str(here)


@pytest.mark.parametrize("is_project", [True, False])
def test_nothing_beside_the_data_is_taken_for_the_standard_librarys(here, is_project):
    (here / "colorsys.py").write_text("raise SystemExit('executed')\n")
    if is_project:
        (here / "pyproject.toml").write_text("[tool.slipway]\n")
    sys.modules.pop("colorsys", None)
    enter_project(["init", "mine"])
    assert importlib.import_module("colorsys").rgb_to_hsv
    assert (str(here) in sys.path) == is_project


def test_variable_that_names_a_folder_below_the_project_is_reported(monkeypatch, here):
    monkeypatch.setenv(module.PROJECT_VARIABLE, "below")
    (here / "pyproject.toml").write_text("[tool.slipway]\n")
    monkeypatch.setattr(module, "PROJECT_ROOT", here / "below")
    with pytest.raises(UsageError, match=r"SLIPWAY_PROJECT \(below\) names no project: ") as refused:
        enter_project(["run"])
    assert refused.value.hint == "name the project's own folder"


def test_missing_tfx_is_reported_with_the_command_that_brings_it(monkeypatch, here):
    (here / "pyproject.toml").write_text("[tool.slipway]\n")
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="TFX is not installed for ") as refused:
        enter_project(["run"])
    assert refused.value.hint == f"in {here}: {module.INSTALL}"


def test_shell_that_asks_for_completions_needs_no_project(monkeypatch):
    monkeypatch.setenv("_SLIPWAY_COMPLETE", "complete_bash")
    enter_project([])
