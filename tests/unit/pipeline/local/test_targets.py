"""Targets: a name that is wrong is told before TFX is imported; arguments come from --set and the engine."""

import sys
from pathlib import Path

import pytest

from pipeline.errors import UsageError
from pipeline.local.targets import arguments, find


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A user's module in a folder of its own; its folder."""
    (tmp_path / "users_pipeline.py").write_text("thing = 7\n")
    (tmp_path / "users_broken.py").write_text("import users_missing_library\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield str(tmp_path)
    sys.modules.pop("users_pipeline", None)


def test_a_thing_is_found_by_module_and_name(module):
    assert find("users_pipeline:thing", folder=module) == 7


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("users_pipeline", "must be MODULE:FUNCTION"),
        ("users_nowhere:create", "no module 'users_nowhere'"),
        ("users_pipeline.sub:create", "no module 'users_pipeline.sub'"),
        ("users_pipeline:create", "users_pipeline has no 'create'"),
    ],
)
def test_a_wrong_name_is_refused(module, name, message):
    with pytest.raises(UsageError, match=message):
        find(name, folder=module)


def test_a_library_that_the_users_module_lacks_is_its_own_error(module):
    with pytest.raises(ModuleNotFoundError, match="users_missing_library"):
        find("users_broken:create", folder=module)


def create(pipeline_name: str, pipeline_root: str, data_root: str, steps: int, fast: bool = False, **rest):
    """As the examples of TFX declare it."""


def test_arguments_are_what_was_set_and_what_the_engine_knows():
    values = {"data_root": "/data", "steps": "10", "fast": "yes", "other": "1"}
    assert arguments(create, name="a.b:create", output=Path("/out"), values=values) == {
        "pipeline_name": "b",
        "pipeline_root": "/out/artifacts/b",
        "data_root": "/data",
        "steps": 10,
        "fast": True,
    }


def test_missing_arguments_are_all_named():
    with pytest.raises(UsageError, match="the function needs data_root, steps") as error:
        arguments(create, name="a:create", output=Path("/out"), values={})
    assert error.value.hint == "give each with --set NAME=VALUE"


@pytest.mark.parametrize(("key", "value", "kind"), [("steps", "ten", "int"), ("fast", "maybe", "bool")])
def test_a_value_of_another_type_is_refused(key, value, kind):
    with pytest.raises(UsageError, match=f"--set {key}={value}: must be of type {kind}"):
        arguments(
            create, name="a:create", output=Path("/out"), values={"data_root": "d", "steps": "1", key: value}
        )


def test_a_function_without_arguments_takes_none():
    assert arguments(lambda: None, name="a:b", output=Path("/out"), values={"word": "x"}) == {}
