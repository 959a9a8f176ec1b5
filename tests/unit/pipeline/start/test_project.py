"""`slipway init`: what it writes holds together, and what it cannot do it says in one sentence."""

import hashlib
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from slipway.pipeline.errors import UsageError
from slipway.pipeline.start import project as module
from slipway.pipeline.start.project import init


@pytest.fixture
def wheel(tmp_path):
    file = tmp_path / "from" / "slipway-0.1.0-py3-none-any.whl"
    file.parent.mkdir()
    file.write_bytes(b"a wheel")
    return file


@pytest.fixture
def made(tmp_path, wheel):
    init(tmp_path / "my-project", wheel=wheel)
    return tmp_path / "my-project"


def test_every_file_that_is_named_is_there(tmp_path, wheel):
    done = init(tmp_path / "mine", wheel=wheel)
    written = {
        str(file.relative_to(tmp_path / "mine")) for file in (tmp_path / "mine").rglob("*") if file.is_file()
    }
    assert written == set(done.files)
    assert (
        done.text()
        .splitlines()[-1]
        .startswith(f"hint: cd {tmp_path}/mine && pip install --no-deps -r requirements.lock")
    )


def test_pyproject_has_our_overrides_and_names_the_wheel(made, project):
    theirs = tomllib.loads((made / "pyproject.toml").read_text())
    ours = tomllib.loads((project / "pyproject.toml").read_text())
    assert theirs["project"]["name"] == "my-project"
    assert theirs["project"]["requires-python"] == ours["project"]["requires-python"]
    assert theirs["tool"]["slipway"] == {}
    for key in ("override-dependencies", "environments"):
        assert theirs["tool"]["uv"][key] == ours["tool"]["uv"][key]
    assert theirs["tool"]["uv"]["sources"]["slipway"]["path"] == "wheels/slipway-0.1.0-py3-none-any.whl"


def test_editor_finds_the_schema_that_each_workload_names(made, project):
    template = (project / "pipeline/start/templates/workload.yaml.j2").read_text(encoding="utf-8")
    named = template.splitlines()[0].partition("$schema=")[2]
    theirs = (made / "workloads/wine" / named).resolve()
    assert theirs.read_bytes() == (project / "schemas/workload.schema.json").read_bytes()


def test_pip_would_not_take_slipway_from_the_public_index(made):
    theirs = tomllib.loads((made / "pyproject.toml").read_text())
    assert theirs["project"]["dependencies"] == []
    groups = theirs["dependency-groups"]
    assert [name for name, group in groups.items() if any("slipway" in each for each in group)] == ["slipway"]
    assert set(theirs["tool"]["uv"]["default-groups"]) == set(groups)


@pytest.mark.parametrize("python", ["3.11", "3.12"])
def test_lock_has_all_that_the_project_asks_for(made, project, python):
    here = {
        **default_environment(),
        "python_version": python,
        "python_full_version": f"{python}.0",
        "extra": "",
    }
    theirs = tomllib.loads((made / "pyproject.toml").read_text())
    own = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    lines = re.findall(
        r"^([A-Za-z0-9][^\\\n]+?)\s*\\?$", (made / "requirements.lock").read_text(), re.MULTILINE
    )
    locked = {}
    for line in map(Requirement, lines):
        if line.marker is None or line.marker.evaluate(here):
            assert canonicalize_name(line.name) not in locked
            locked[canonicalize_name(line.name)] = next(iter(line.specifier)).version
    asked = [Requirement(each) for group in theirs["dependency-groups"].values() for each in group]
    (slipway,) = (each for each in asked if each.name == "slipway")
    asked.remove(slipway)
    asked += [
        Requirement(each)
        for part in (own["dependencies"], *(own["optional-dependencies"][extra] for extra in slipway.extras))
        for each in part
    ]
    overrides = [Requirement(each) for each in theirs["tool"]["uv"]["override-dependencies"]]
    replaced = {each.name for each in overrides}
    asked = [*(each for each in asked if each.name not in replaced), *overrides]
    asked = [each for each in asked if each.marker is None or each.marker.evaluate(here)]
    assert slipway.extras == {"tfx", "cloud", "stores"}
    assert len(asked) > 25
    wrong = [
        str(each) for each in asked if locked.get(canonicalize_name(each.name), "0") not in each.specifier
    ]
    assert wrong == []


def test_lock_names_the_wheel_by_its_digest_and_no_address(made):
    text = (made / "requirements.lock").read_text()
    digest = hashlib.sha256(b"a wheel").hexdigest()
    assert f"./wheels/slipway-0.1.0-py3-none-any.whl \\\n    --hash=sha256:{digest}\n" in text
    assert (made / "wheels" / "slipway-0.1.0-py3-none-any.whl").read_bytes() == b"a wheel"
    assert "://" not in text
    assert "index-url" not in text


def test_lock_has_the_versions_of_our_own(made, project):
    def pins(file):
        return set(re.findall(r"^([\w.\[\]-]+==\S+)", file.read_text(), re.MULTILINE))

    # Two packages of an implementation of Python that ours leaves out.
    other = pins(made / "requirements.lock") - pins(project / "requirements.lock")
    assert {each.partition("==")[0] for each in other} <= {"cffi", "pycparser"}
    assert {"tfx", "tensorflow", "kfp", "pytest"} <= {
        each.partition("==")[0].partition("[")[0] for each in pins(made / "requirements.lock")
    }


def test_workflow_and_container_install_by_the_lock_file(made):
    steps = yaml.safe_load((made / ".github/workflows/ci.yml").read_text())["jobs"]["test"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands == ["pip install --no-deps -r requirements.lock", "python -m pytest"]
    assert steps[1]["with"]["python-version"] == "${{ matrix.python }}"
    container = json.loads((made / ".devcontainer/devcontainer.json").read_text())
    assert container["postCreateCommand"] == commands[0]
    assert container["runArgs"] == ["--platform=linux/amd64"]  # as the lock file's packages are built
    stages = re.findall(r"^FROM (.*)", (made / "Dockerfile").read_text(), re.MULTILINE)
    assert len(stages) == 2
    assert all(stage.startswith("--platform=linux/amd64 ") for stage in stages)
    assert "--no-deps --require-hashes -r requirements.lock" in (made / "Dockerfile").read_text()


def test_image_has_the_environment_of_ours(made, project):
    from slipway.pipeline.cloud.image_contents import image_environment, read_image

    theirs, ours = image_environment(made), image_environment(project)
    assert {**ours, "SLIPWAY_PROJECT": "/opt/slipway"} == theirs
    assert "workloads/__init__.py" in read_image(made).files
    assert not any(file.startswith(("tests/", "output/")) for file in read_image(made).files)


def test_name_that_no_package_may_have_is_refused(tmp_path, wheel):
    with pytest.raises(
        UsageError, match="'my project' is not a valid project name: letters, digits"
    ) as refused:
        init(tmp_path / "my project", wheel=wheel)
    assert refused.value.hint == "for example: slipway init my-project"
    assert not (tmp_path / "my project").exists()


def test_folder_that_is_not_empty_is_left_alone(tmp_path, wheel):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"mine is not empty: it holds notes.txt; a project starts in"):
        init(folder, wheel=wheel)
    assert [each.name for each in folder.iterdir()] == ["notes.txt"]


def test_empty_folder_of_git_becomes_a_project(tmp_path, wheel):
    subprocess.run(["git", "init", "-q", str(tmp_path / "mine")], check=True)
    init(tmp_path / "mine", wheel=wheel)
    assert (tmp_path / "mine" / "pyproject.toml").is_file()


def test_file_is_no_place_for_a_project(tmp_path, wheel):
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError, match="mine is a file; a project is a folder"):
        init(tmp_path / "mine", wheel=wheel)


def test_projects_do_not_nest(made, wheel):
    with pytest.raises(UsageError, match=r"would lie in the project .*my-project, and projects do not nest"):
        init(made / "inner", wheel=wheel)
    assert not (made / "inner").exists()


@pytest.mark.parametrize(
    "name", ["other-1.0-py3-none-any.whl", "slipway-0.1.0.tar.gz", "slipway-9-py3-none-any.whl"]
)
def test_what_is_no_wheel_of_slipway_is_refused(tmp_path, name):
    if "9" not in name:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError, match=f"--wheel .*{re.escape(name)} is not a wheel of Slipway"):
        init(tmp_path / "mine", wheel=tmp_path / name)
    assert not (tmp_path / "mine").exists()


class _Installed:
    def __init__(self, noted):
        self.noted = noted

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.noted


def test_wheel_is_the_one_that_the_installer_noted(monkeypatch, tmp_path, wheel):
    noted = json.dumps({"url": wheel.as_uri(), "archive_info": {}})
    monkeypatch.setattr(module.metadata, "distribution", lambda _: _Installed(noted))
    init(tmp_path / "mine", wheel=None)
    assert (tmp_path / "mine" / "wheels" / wheel.name).read_bytes() == b"a wheel"


@pytest.mark.parametrize(
    "noted",
    [
        None,
        "no JSON",
        '{"url": "file:///gone/slipway-0.1.0-py3-none-any.whl"}',
        '{"url": "https://x/slipway.whl"}',
        "[]",
    ],
)
def test_wheel_that_is_gone_is_to_be_named(monkeypatch, tmp_path, noted):
    monkeypatch.setattr(module.metadata, "distribution", lambda _: _Installed(noted))
    with pytest.raises(
        UsageError, match=r"The project keeps a copy of Slipway's wheel, but .* is not a file"
    ) as refused:
        init(tmp_path / "mine", wheel=None)
    assert "--wheel slipway-VERSION-py3-none-any.whl" in refused.value.hint
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("is_clone", [True, False])
def test_where_the_wheel_cannot_be_written_all_is_as_it_was(monkeypatch, tmp_path, wheel, is_clone):
    if is_clone:
        (tmp_path / "mine" / ".git").mkdir(parents=True)
    opened = Path.open

    def fail(file, mode="r", **options):
        if file.suffix == ".whl" and mode == "xb":
            raise OSError(28, "No space left on device", str(file))
        return opened(file, mode, **options)

    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(
        UsageError, match=r"\.whl cannot be written: No space left on device; nothing is left"
    ):
        init(tmp_path / "mine", wheel=wheel)
    assert (tmp_path / "mine").exists() == is_clone
    if is_clone:
        assert [file.name for file in (tmp_path / "mine").iterdir()] == [".git"]
    monkeypatch.undo()
    init(tmp_path / "mine", wheel=wheel)
