"""What the Dockerfile and .dockerignore put into the image, and where."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from slipway.pipeline.cloud.image_contents import (
    IMAGE_PACKAGES,
    IMAGE_ROOT,
    image_environment,
    on_this_machine,
    read_image,
)
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring.vertex_tpu_slices import IMAGE_TARGETS

LOCKS = ("requirements-image.lock", "requirements-tpu.lock", "requirements-tpu-tensorflow.lock")


def pins_of(file):
    return set(re.findall(r"^([a-z0-9._-]+==[^ ]+)", file.read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def dockerfile(project):
    return (project / "Dockerfile").read_text()


@pytest.fixture
def small_project(tmp_path):
    for name in (
        "Dockerfile",
        "components/a.py",
        "workloads/w/data.csv",
        "docs/a.md",
        "components/__pycache__/a.pyc",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / ".dockerignore").write_text("# comment\n*\n!components\n!workloads\n**/__pycache__\n")
    return tmp_path


def test_every_module_workload_and_schema_travels_and_nothing_else(project):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=project, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    packages = ("pipeline/", "components/", "schemas/", "slipway/", "workloads/")
    needed = {name for name in listed if name.startswith(packages) and not (project / name).is_dir()}
    needed |= {f"slipway/{name}" for name in ("pipeline", "components", "schemas")}  # links to folders
    needed |= {"local_runner.py", "cloud_runner.py", "setup.sh", *LOCKS}
    assert len(needed) > 100
    travelling = read_image(project).files
    assert needed <= travelling
    # What git ignores may lie there too, e.g. a user's data; never the environment, runs or history.
    others = {name for name in travelling - needed if not name.startswith(packages)}
    assert others == set()


def test_what_the_dockerfile_copies_exists_and_is_not_ignored(project, dockerfile):
    copied = [
        source
        for line in dockerfile.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    ]
    slim = "pipeline/cloud/slim_packages.py"
    assert copied == [LOCKS[0], "setup.sh", slim, ".", LOCKS[2], "setup.sh", "."]
    files = read_image(project).files
    assert {source for source in copied if source != "."} <= files
    assert "requirements-tpu.lock" in files, "what the target training-tpu installs"


def test_image_has_every_package_that_the_code_declares(project):
    """A rehearsal runs with this machine's packages: it cannot tell that the image lacks one."""
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    needed = [*declared["dependencies"], *declared["optional-dependencies"]["cloud"]]
    names = {re.match(r"[A-Za-z0-9._-]+", each)[0].lower() for each in needed}
    pinned = {pin.partition("==")[0] for pin in pins_of(project / LOCKS[0])}
    assert "tfx" in names
    assert names - pinned == set(), "make lock"


def test_paths_in_the_code_are_those_of_the_dockerfile(dockerfile):
    python = re.search(r"^ARG BASE=python:(\d+\.\d+)-", dockerfile, re.MULTILINE)[1]
    assert f"/opt/venv/lib/python{python}/site-packages" == IMAGE_PACKAGES
    *places, of_beams_launcher = re.findall(r"^WORKDIR (\S+)", dockerfile, re.MULTILINE)
    assert set(places) == {IMAGE_ROOT}
    assert of_beams_launcher == image_environment()["HOME"], "it writes where it starts"
    assert "bash setup.sh /opt/venv" in dockerfile


def test_the_image_does_not_run_as_root_and_sets_what_a_task_needs(dockerfile):
    users = [line.split()[1] for line in dockerfile.splitlines() if line.startswith("USER ")]
    *of_tasks, of_beam_workers = users
    assert of_tasks == ["10001", "0", "10001", "10001"], "root for one installation only"
    assert of_beam_workers == "0", "Dataflow mounts folders of root's for them"
    environment = image_environment()
    assert environment["TF_USE_LEGACY_KERAS"] == "0"
    assert environment["KERAS_BACKEND"] == "tensorflow"
    assert environment["PYTHONPATH"] == IMAGE_ROOT
    assert environment["PATH"].startswith("/opt/venv/bin:")


def test_tpu_lock_pins_the_jax_that_the_extra_names_and_moves_nothing(project):
    extra = tomllib.loads((project / "pyproject.toml").read_text())["project"]["optional-dependencies"]["tpu"]
    [version] = re.findall(r"^jax\[tpu\]==(\S+)$", "\n".join(extra), re.MULTILINE)
    assert f"jax[tpu]=={version}" in (project / "Makefile").read_text()
    pins = {name: pins_of(project / name) for name in ("requirements.lock", "requirements-tpu.lock")}
    assert f"jax=={version}" in pins["requirements-tpu.lock"]
    shared = {pin.split("==")[0] for pin in pins["requirements.lock"]}
    moved = {
        pin
        for pin in pins["requirements-tpu.lock"] - pins["requirements.lock"]
        if pin.split("==")[0] in shared
    }
    assert moved == set()


def test_image_has_the_packages_of_a_desk_without_what_develops_and_tests(project):
    image, desk = pins_of(project / LOCKS[0]), pins_of(project / "requirements.lock")
    # At a desk pip is Python's own; in the image it is listed like any other package.
    assert {pin.partition("==")[0] for pin in image - desk} == {"pip"}
    there = {pin.partition("==")[0] for pin in image}
    developing = {"pytest", "ruff", "mypy", "hypothesis", "import-linter", "gcp-storage-emulator"}
    assert developing & there == set()
    unused = _not_in_image(project)
    assert {"jedi", "libclang", "google-cloud-spanner"} <= set(unused)
    assert set(unused) & there == set(), "make lock"
    desktop = {pin.partition("==")[0] for pin in desk}
    assert set(unused) <= desktop, "what nothing asks for needs no rule"
    assert {"tfx", "tensorflow", "keras", "kfp", "docker", "google-cloud-aiplatform", "uv"} <= there


def _not_in_image(project):
    told = subprocess.run(
        ["make", "--no-print-directory", "--eval", "told: ; @echo $(NOT_IN_IMAGE)", "told"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.replace("--no-emit-package", "").split()


def _makefile(project):
    return (project / "Makefile").read_text().replace("\\\n", " ")


def test_image_says_what_it_was_built_from(project, dockerfile):
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    assert f'org.opencontainers.image.licenses="{declared["license"]}"' in dockerfile
    assert 'org.opencontainers.image.revision="${REVISION}"' in dockerfile
    assert "--build-arg REVISION=$$(git describe --always --dirty" in _makefile(project)


def test_tensorflow_for_tpus_trains_with_the_keras_that_exports(project):
    image, training = pins_of(project / LOCKS[0]), pins_of(project / LOCKS[2])
    [keras] = [pin for pin in image if pin.startswith("keras==")]
    assert keras in training
    assert "tensorflow-tpu==2.20.0" in training
    assert not any(pin.startswith(("tfx==", "tensorflow==")) for pin in training)


def test_target_of_each_backend_that_trains_on_tpus_is_in_the_dockerfile(dockerfile):
    targets = set(re.findall(r"^FROM \S+ AS (\S+)$", dockerfile, re.MULTILINE))
    assert set(IMAGE_TARGETS.values()) <= targets


def test_ignored_files_are_not_in_the_image(small_project):
    assert read_image(small_project).files == {"components/a.py", "workloads/w/data.csv"}


def test_path_in_the_image_of_what_travels_and_none_of_what_does_not(small_project):
    image = read_image(small_project)
    assert image.path_of(small_project / "workloads/w/data.csv") == "/opt/slipway/workloads/w/data.csv"
    assert image.path_of(small_project / "workloads/w") == "/opt/slipway/workloads/w"
    assert image.path_of(small_project / "docs/a.md") is None
    assert image.path_of(small_project / "workload") is None
    assert image.path_of(Path("/somewhere/else")) is None
    assert image.path_of(image.packages / "tfx/data.csv") == f"{IMAGE_PACKAGES}/tfx/data.csv"


def test_staged_copy_holds_the_image_s_files_and_its_paths_lead_there(small_project, tmp_path):
    image, staged = read_image(small_project), tmp_path / "staged"
    image.stage(staged)
    assert {str(p.relative_to(staged)) for p in staged.rglob("*") if p.is_file()} == image.files
    there = on_this_machine('{"base": "/opt/slipway/workloads/w/data.csv"}', staged=staged)
    assert there == f'{{"base": "{staged}/workloads/w/data.csv"}}'
    assert on_this_machine(f"{IMAGE_PACKAGES}/tfx", staged=staged) == f"{image.packages}/tfx"


def test_link_out_of_the_project_is_refused_because_it_would_lead_nowhere(small_project, tmp_path):
    outside = tmp_path.parent / "outside.csv"
    outside.write_text("x")
    (small_project / "workloads/w/link.csv").symlink_to(outside)
    with pytest.raises(
        ConfigError, match=r"workloads/w/link.csv is a link to .*outside.csv, which is not in"
    ):
        read_image(small_project).stage(tmp_path / "staged")


@pytest.mark.parametrize(("read", "name"), [(read_image, ".dockerignore"), (image_environment, "Dockerfile")])
def test_project_made_by_hand_is_reported_what_a_cloud_run_needs(tmp_path, read, name):
    with pytest.raises(ConfigError, match=rf"has no {re.escape(name)}, which defines the image") as refused:
        read(tmp_path)
    assert "`slipway init`, in a new folder, writes" in refused.value.hint


def test_no_package_is_compiled_by_the_time_of_its_build(dockerfile):
    installs = [step for step in re.split(r"^(?=[A-Z]+ )", dockerfile, flags=re.MULTILINE) if ".lock" in step]
    installs = [step for step in installs if step.startswith("RUN")]
    assert len(installs) == 3
    for step in installs:
        assert re.search(r"BYTECODE=unchecked_hash bash setup.sh|SOURCE_DATE_EPOCH=0 python -m pip", step), (
            step
        )
