"""Dotted paths are checked by reading source files: what is found missing, and that nothing is executed."""

from pathlib import Path

import pytest

from slipway.pipeline.config import importable
from slipway.pipeline.config.importable import files_imported, find_import_problem

MODEL = """\
from __future__ import annotations

import json
import keras.layers
import tensorflow as tf
from workloads.taxi import columns
from workloads.taxi.columns import FEATURES, one as uno
from . import columns as again
from .columns import *

try:
    import not_installed_anywhere
except ImportError:
    def fallback(): ...
if not FEATURES:
    import nor_this
raise SystemExit("this file was executed")


def build_model(features, hyperparameters): ...


async def slow(): ...


class Builder: ...


alias = build_model
"""


@pytest.fixture
def project(tmp_path):
    """A project folder with a workload whose modules cannot be executed, only read."""
    files = {
        "workloads/__init__.py": "",
        "workloads/taxi/__init__.py": "",
        "workloads/taxi/columns.py": "FEATURES = ['a']\none: int = 1\ndef helper(): ...\n",
        "workloads/taxi/model.py": MODEL.replace("from .columns import *\n", ""),
        "workloads/star.py": "from workloads.taxi.columns import *\n",
        "workloads/lazy.py": "def __getattr__(name): ...\n",
        "plain/deep/module.py": "def run(): ...\n",
        "keras/notes.txt": "a folder that is named like an installed package",
    }
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "dotted",
    [
        "workloads.taxi.model.build_model",
        "workloads.taxi.model.Builder",
        "workloads.taxi.model.alias",
        "workloads.taxi.model.fallback",
        "workloads.taxi.model.uno",
        "workloads.star.helper",
        "workloads.lazy.anything",
        "plain.deep.module.run",
        "keras.applications.ResNet50",
        "os.path.join",
    ],
)
def test_function_that_is_there_is_found_without_executing_anything(project, dotted):
    assert find_import_problem(dotted, root=project) == ""


@pytest.mark.parametrize(
    ("dotted", "words"),
    [
        ("workload.taxi.model.build_model", "no module workload is here or installed; nearest: workloads"),
        ("workloads.tax.model.build_model", "there is no module workloads.tax; nearest: taxi"),
        ("workloads.taxi.modell.build_model", "there is no module workloads.taxi.modell; nearest: model"),
        (
            "workloads.taxi.model.x.build_model",
            "there is no module workloads.taxi.model.x; check the spelling",
        ),
        (
            "workloads.taxi.model.bild_model",
            "workloads/taxi/model.py has no function bild_model; nearest: build_model",
        ),
        ("workloads.taxi.columns.xyz", "workloads/taxi/columns.py has no function xyz; there are: helper"),
        ("workloads.taxi.model", "is a module, not a function of it; there are: build_model, fallback"),
        ("plain.deep", "is a module, not a function of it; check the spelling"),
        ("plain.deep.module.walk", "plain/deep/module.py has no function walk; there are: run"),
        ("kerass.layers.f", "no module kerass is here or installed; nearest: keras"),
    ],
)
def test_wrong_path_is_reported_with_the_nearest_name(project, dotted, words):
    assert find_import_problem(dotted, root=project) == words


def test_a_class_is_looked_for_among_classes(project):
    assert find_import_problem("workloads.taxi.model.Builder", root=project, kind="class") == ""
    told = find_import_problem("workloads.taxi.model.Bilder", root=project, kind="class")
    assert told == "workloads/taxi/model.py has no class Bilder; nearest: Builder"
    told = find_import_problem("workloads.taxi.model", root=project, kind="class")
    assert told == "is a module, not a class of it; there are: Builder"


@pytest.mark.parametrize(
    ("first_line", "words"),
    [
        ("def (:", "workloads/taxi/columns.py:1: invalid syntax"),
        ("x = (1", "workloads/taxi/columns.py:1: '(' was never closed"),
        ("x = '\\0'\0", "workloads/taxi/columns.py:1: source code string cannot contain null bytes"),
        ("x = " + "-" * 100_000 + "1", "workloads/taxi/columns.py:1: "),
        (
            "import tensorflw",
            "workloads/taxi/columns.py:1: no module tensorflw is here or installed; nearest: tensorflow",
        ),
        ("import os, workloads.bus", "workloads/taxi/columns.py:1: there is no module workloads.bus"),
        (
            "from workloads.taxi.modl import x",
            "workloads/taxi/columns.py:1: there is no module workloads.taxi.modl",
        ),
        (
            "from .modl import x",
            "workloads/taxi/columns.py:1: there is no module workloads.taxi.modl; nearest: model",
        ),
        ("from ... import x", "workloads/taxi/columns.py:1: 'from ...' leads out of the packages"),
        ("from .... import x", "leads out of the packages"),
        ("from workloads.lazie import x", "nearest: lazy"),
        ("from workloads.taxi import modl", "workloads/taxi/__init__.py has no modl; check the spelling"),
        (
            "from workloads.taxi.model import bild_model",
            "workloads/taxi/model.py has no bild_model; nearest: build_model",
        ),
    ],
    ids=lambda value: value[:30],
)
def test_broken_import_further_down_is_reported_with_its_own_file_and_line(project, first_line, words):
    (project / "workloads/taxi/columns.py").write_text(f"{first_line}\nFEATURES = []\none = 1\n")
    assert words in find_import_problem("workloads.taxi.model.build_model", root=project)


def test_syntax_error_in_the_package_around_the_module_is_reported(project):
    (project / "workloads/taxi/__init__.py").write_text("\n\nx = = 1\n")
    found = find_import_problem("workloads.taxi.model.build_model", root=project)
    assert found == "workloads/taxi/__init__.py:3: invalid syntax"


def test_modules_that_import_each_other_end(project):
    (project / "workloads/taxi/columns.py").write_text(
        "from workloads.taxi import model\nFEATURES = one = 1\n"
    )
    assert find_import_problem("workloads.taxi.model.build_model", root=project) == ""


def test_invalid_escape_in_user_code_is_no_warning_here(project):
    (project / "workloads/taxi/columns.py").write_text("FEATURES = one = '\\d'\n")
    assert find_import_problem("workloads.taxi.model.build_model", root=project) == ""


WORDS = (
    "{0} is Slipway's own here, and imported as slipway.{0}; a folder {0}/ of yours needs an __init__.py, "
    "and comes first on the path"
)
CNN = "components.trainer.models.cnn.build_model"


def test_old_name_of_ours_is_reported_with_the_new_one(project):
    assert find_import_problem(CNN, root=project) == WORDS.format("components")
    checkout = Path(importable.__file__).resolve().parents[2]
    assert find_import_problem(CNN, root=checkout) == WORDS.format("components")
    assert find_import_problem(f"slipway.{CNN}", root=checkout) == ""


def test_models_of_ours_are_read_where_slipway_is_installed(project):
    assert find_import_problem(f"slipway.{CNN}", root=project) == ""
    told = find_import_problem("slipway.components.trainer.models.cn.build_model", root=project)
    assert told == "there is no module slipway.components.trainer.models.cn; nearest: cnn"
    told = find_import_problem("slipway.components.trainer.models.cnn.bild_model", root=project)
    assert told.endswith("components/trainer/models/cnn.py has no function bild_model; nearest: build_model")


def test_package_of_the_user_that_has_such_a_name_is_the_users(project):
    (project / "components").mkdir()
    (project / "components/mine.py").write_text("def build_model(): ...\n")
    assert find_import_problem("components.mine.build_model", root=project) == WORDS.format("components")
    (project / "components/__init__.py").touch()
    assert find_import_problem("components.mine.build_model", root=project) == ""


def test_import_by_the_old_name_is_reported_with_its_place(project):
    (project / "workloads/taxi/columns.py").write_text(
        "FEATURES = one = 1\nfrom pipeline.errors import ConfigError\n"
    )
    told = find_import_problem("workloads.taxi.model.build_model", root=project)
    assert told == f"workloads/taxi/columns.py:2: {WORDS.format('pipeline')}"


def test_function_of_a_workload_of_ours_is_found_and_another_is_not(project):
    assert find_import_problem("workloads.taxi.model.build_model", root=project) == ""
    assert "has no function x" in find_import_problem("workloads.taxi.model.x", root=project)


def test_files_that_an_import_runs_are_those_of_the_user_and_of_what_they_import(tmp_path):
    for name, text in (
        ("own/__init__.py", ""),
        (
            "own/model.py",
            "import os\nimport keras\nfrom slipway.components import errors\nfrom far import tools",
        ),
        ("far/tools.py", "import gone"),
        ("other.py", ""),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\ndef build_model(): ...\n")
    found = files_imported("own.model.build_model", root=tmp_path)
    assert found == [tmp_path / name for name in ("own/__init__.py", "own/model.py", "far/tools.py")]
    assert files_imported("keras.applications.ResNet50", root=tmp_path) == []
