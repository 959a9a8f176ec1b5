"""Targets: a name that is wrong is told before TFX is imported; arguments come from --set and the engine."""

import sys
from pathlib import Path

import pytest

from slipway.pipeline.engine.tfx.load_pipeline import find
from slipway.pipeline.errors import UsageError


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


@pytest.mark.parametrize("name", ["local_runner:run", "slipway.pipeline.dag:build_pipeline"])
def test_module_that_is_slipways_own_is_refused_before_it_is_imported(name, tmp_path):
    with pytest.raises(
        UsageError, match=rf"^--pipeline {name}, but {name.split('.')[0].split(':')[0]} is Slipway"
    ):
        find(name, folder=str(tmp_path))


def test_module_of_the_user_that_ours_hides_is_named(tmp_path):
    (tmp_path / "slipway").mkdir()
    with pytest.raises(UsageError, match=rf"is Slipway's own and hides {tmp_path}/slipway") as refused:
        find("slipway.mine:create_pipeline", folder=str(tmp_path))
    assert refused.value.hint == "rename yours; taken are slipway, local_runner, cloud_runner"


def test_what_the_users_module_imports_and_ours_hides_is_named(module):
    Path(module, "slipway").mkdir()
    Path(module, "users_template.py").write_text("import slipway.mine\n")
    with pytest.raises(UsageError, match=r"it imports slipway\.mine, but .* hides"):
        find("users_template:create", folder=module)


@pytest.fixture
def template(module):
    """A user's folder as TFX's templates have it, beside which nothing of these names was imported."""
    names = ("pipeline", "components")
    for name in names:
        Path(module, name).mkdir()
        Path(module, name, "__init__.py").touch()
    Path(module, "pipeline", "configs.py").write_text("NAME = 'mine'\n")
    Path(module, "components", "mine.py").write_text("from pipeline import configs\nfound = configs.NAME\n")
    Path(module, "users_template.py").write_text("from components import mine\n\nfound = mine.found\n")
    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] in (*names, "users_template")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "found"),
    [("pipeline.configs:NAME", "mine"), ("components.mine:found", "mine"), ("users_template:found", "mine")],
)
def test_users_own_pipeline_and_components_come_before_ours(template, name, found):
    assert find(name, folder=template) == found


def test_module_beside_a_pipeline_does_not_stand_in_for_pythons_own(module, monkeypatch):
    """Beam imports cProfile, which needs Python's own `profile`."""
    Path(module, "profile.py").touch()
    Path(module, "users_plain.py").write_text("thing = 7\n")
    for name in ("profile", "cProfile", "users_plain"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert find("users_plain:thing", folder=module) == 7
    import cProfile

    assert callable(cProfile.run)


@pytest.mark.parametrize("name", ["pipeline", "components"])
def test_folder_that_is_no_package_for_python_is_named(template, name):
    Path(template, name, "__init__.py").unlink()
    with pytest.raises(UsageError, match=rf"{name}/ of yours needs an __init__\.py"):
        find(f"{name}.mine:found", folder=template)


@pytest.mark.parametrize("statement", ["import schemas", "from components import errors"])
def test_old_name_of_ours_is_refused_with_the_new_one(module, statement):
    Path(module, "users_old.py").write_text(f"{statement}\n")
    name = statement.split()[1]
    with pytest.raises(UsageError, match=rf"{name} is Slipway's own here, and imported as slipway\.{name};"):
        find("users_old:create", folder=module)


def test_library_of_ours_that_lacks_something_is_no_mistake_of_the_users(module):
    Path(module, "users_other.py").write_text("from slipway.pipeline import nothing_of_that_name\n")
    with pytest.raises(ImportError, match="nothing_of_that_name"):
        find("users_other:create", folder=module)
