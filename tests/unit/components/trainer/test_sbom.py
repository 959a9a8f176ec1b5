"""The bill of materials of a training: what is in it, and that no address is."""

import json
import platform
import subprocess
import sys
from importlib.metadata import version

import pytest

from slipway.components.trainer.sbom import bill_of_materials


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Makes a package as an installer leaves it, first on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name, number, **files):
        folder = tmp_path / f"{name}-{number}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n\nVersion: 9\n"
        )
        for file, content in files.items():
            (folder / f"{file}.json").write_text(content, encoding="utf-8")

    return make


def component(name):
    return next((each for each in bill_of_materials()["components"] if each["name"] == name), None)


def test_packages_and_interpreter_are_listed_by_version():
    found = bill_of_materials()
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert component("numpy") == {
        "type": "library",
        "bom-ref": f"pkg:pypi/numpy@{version('numpy')}",
        "name": "numpy",
        "version": version("numpy"),
        "purl": f"pkg:pypi/numpy@{version('numpy')}",
    }
    assert component("CPython")["version"] == platform.python_version()
    references = [each["bom-ref"] for each in found["components"] if "bom-ref" in each]
    assert len(references) == len(set(references)) > 100


def test_equal_environments_have_equal_bills():
    assert bill_of_materials() == bill_of_materials()


def test_package_whose_metadata_are_in_an_old_encoding_is_listed_as_well(installed, tmp_path):
    installed("old-café", "1.2")
    file = tmp_path / "old-café-1.2.dist-info" / "METADATA"
    file.write_bytes("Metadata-Version: 1.0\nName: old\nVersion: 1.2\nAuthor: José\n".encode("latin-1"))
    assert component("old")["version"] == "1.2"


def test_package_that_comes_first_on_the_path_is_the_one_listed(installed):
    installed("NumPy", "0.1+local")
    assert component("numpy") is None
    assert component("NumPy")["purl"] == "pkg:pypi/numpy@0.1%2Blocal"


def test_hash_of_an_archive_is_reported_and_its_address_is_not(installed):
    noted = {
        "url": "https://me:hunter2@host/a.whl",
        "archive_info": {"hashes": {"sha256": "A" * 64, "md5": "b"}},
    }
    installed("own", "1", direct_url=json.dumps(noted))
    assert component("own")["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]
    assert "hunter2" not in json.dumps(bill_of_materials())


@pytest.mark.parametrize(
    "noted",
    ["", "{", "null", "[]", '{"archive_info": {"hashes": {"sha256": "<script>"}}}', '{"dir_info": {}}'],
)
def test_note_of_an_installer_that_says_nothing_gives_no_hash(installed, noted):
    installed("own", "1", direct_url=noted)
    assert "hashes" not in component("own")


def test_package_without_a_name_is_left_out(installed, tmp_path):
    installed("own", "1")
    (tmp_path / "own-1.dist-info/METADATA").write_text("")
    assert component("own") is None


def test_another_interpreter_lists_its_own_packages(project):
    """As the training's: it needs nothing but this module."""
    code = "import json, slipway.components.trainer.sbom as e; print(json.dumps(e.bill_of_materials()))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, check=True, env={"PYTHONPATH": str(project)}
    )
    names = {each["name"] for each in json.loads(done.stdout)["components"]}
    assert "CPython" in names
    assert "numpy" not in names
