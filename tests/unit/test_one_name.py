"""Everything of ours has one name: a module that is loaded under two has its classes and its state twice."""

import subprocess
import sys

import pytest

FOLDERS = ("pipeline", "components", "schemas")


@pytest.mark.parametrize("name", FOLDERS)
def test_folder_of_ours_is_not_imported_by_its_bare_name(name):
    with pytest.raises(
        ImportError, match=rf"^{name} is Slipway's own here, and imported as slipway\.{name};"
    ):
        __import__(name)
    assert name not in sys.modules


@pytest.mark.parametrize("name", FOLDERS)
def test_checkout_links_each_folder_into_the_package_by_a_relative_path(project, name):
    link = project / "slipway" / name
    assert str(link.readlink()) == f"../{name}"


def test_no_module_of_ours_is_loaded_under_two_names(project):
    program = """
import sys
from pathlib import Path
import local_runner, cloud_runner
import slipway.pipeline.engine.tfx.launch, slipway.pipeline.engine.tfx.compile, slipway.pipeline.dag
root = Path(sys.argv[1])
files = [Path(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None)]
files = [file.resolve() for file in files if "site-packages" not in file.parts]
ours = [file for file in files if file.is_relative_to(root)]
print(len(ours), len(set(ours)), sorted({"pipeline", "components", "schemas"} & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(project)],
        cwd=project, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded, different, bare = done.stdout.splitlines()[-1].split(" ", 2)
    assert int(loaded) > 100
    assert loaded == different
    assert bare == "[]"
