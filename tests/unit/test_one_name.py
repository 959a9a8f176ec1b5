"""Everything of ours has one name: a module that is loaded under two has its classes and its state twice."""

import os
import sys

import pytest

from slipway.components.python_process import ForkedProcess

FOLDERS = ("pipeline", "components", "schemas")


@pytest.mark.parametrize("name", FOLDERS)
def test_folder_of_ours_is_not_imported_by_its_bare_name(name):
    with pytest.raises(
        ImportError, match=rf"^{name} is Slipway's own here, and imported as slipway\.{name};"
    ):
        __import__(name)
    assert name not in sys.modules


@pytest.mark.parametrize("name", [*FOLDERS, "local_runner.py", "cloud_runner.py"])
def test_checkout_links_folders_and_runners_into_the_package_by_relative_paths(project, name):
    # A copy of a runner would go into the wheel, and stay as it is when the runner is edited.
    link = project / "slipway" / name
    assert str(link.readlink()) == f"../{name}"


def test_no_module_of_ours_is_loaded_under_two_names(warm, project):
    found = {**os.environ, "PYTHONPATH": f"{project}{os.pathsep}{project / 'tests/support'}"}
    process = ForkedProcess(warm._line, "loaded_modules", [], found)
    with process.stdout as stdout:
        told = stdout.read()
    assert process.wait() == 0, told
    loaded, different, bare = told.splitlines()[-1].split(" ", 2)
    assert int(loaded) > 100
    assert loaded == different
    assert bare == "[]"
