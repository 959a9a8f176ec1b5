"""The workflows of GitHub see every lock file, and release only what was tested."""

import subprocess

import pytest
import yaml


@pytest.fixture
def workflow(project):
    return lambda name: yaml.safe_load((project / ".github/workflows" / name).read_text())


def test_every_lock_file_is_audited(project, workflow):
    listed = subprocess.check_output(["git", "ls-files", "*.lock"], cwd=project, text=True).split()
    assert sorted(workflow("audit.yml")["jobs"]["audit"]["strategy"]["matrix"]["lock"]) == sorted(listed)


def test_lock_file_is_audited_before_and_after_it_is_merged_and_each_week(workflow):
    # YAML 1.1 reads the key `on` as a truth value.
    events = workflow("audit.yml")[True]
    assert events["pull_request"]["paths"] == events["push"]["paths"] == ["**.lock"]
    assert len(events["schedule"]) == 1


def test_nothing_is_released_before_the_tests_of_the_ci_have_passed(workflow):
    release = workflow("release.yml")["jobs"]
    assert release["tests"]["uses"] == "./.github/workflows/ci.yml"
    needed = [release[job]["needs"] for job in ("wheel", "release", "image")]
    assert needed == ["tests", "wheel", "release"]
    assert "workflow_call" in workflow("ci.yml")[True]


@pytest.mark.parametrize(
    ("base", "code"),
    [
        (f"docker.io/library/python:3.11-slim-trixie@sha256:{'a' * 64}", 0),
        ("python:3.11-slim-trixie", 1),
        ("", 1),
    ],
)
def test_image_of_a_release_is_built_on_a_base_of_one_digest(workflow, base, code):
    steps = {step.get("name"): step for step in workflow("release.yml")["jobs"]["wheel"]["steps"]}
    check = steps["the image's base is named by its digest"]
    done = subprocess.run(["sh", "-c", check["run"]], env={"BASE": base}, capture_output=True, text=True)
    assert done.returncode == code
    assert code == 0 or f"IMAGE_BASE is '{base}'" in done.stdout
    [build] = [step for step in workflow("release.yml")["jobs"]["image"]["steps"] if "run" in step]
    assert '--build-arg BASE="$BASE"' in build["run"]
    assert build["env"]["BASE"] == check["env"]["BASE"]


def test_job_that_may_write_a_release_installs_nothing(workflow):
    file = workflow("release.yml")
    writing = [
        name for name, job in file["jobs"].items() if job.get("permissions", {}).get("contents") == "write"
    ]
    assert (writing, file["permissions"]) == (["release"], {"contents": "read"})
    steps = file["jobs"]["release"]["steps"]
    assert [step.get("uses", step.get("run", "")).split("@")[0].split('"')[0].strip() for step in steps] == [
        "actions/download-artifact",
        "gh release create",
    ]


def test_packages_of_a_released_image_are_listed_beside_it(project, workflow):
    jobs = workflow("release.yml")["jobs"]
    said = [step.get("run", "") for job in ("wheel", "release") for step in jobs[job]["steps"]]
    [listing] = [words for words in said if "cyclonedx-py requirements" in words]
    install, command = listing.splitlines()
    assert install.split()[-1] in (project / "Makefile").read_text(), "the version of make sbom"
    assert command.endswith("-o sbom.json requirements-image.lock")
    [release] = [words for words in said if words.startswith("gh release create")]
    assert " sbom.json " in release


def test_no_action_is_named_by_a_tag(project, workflow):
    files = [
        *(project / ".github/workflows").glob("*.yml"),
        *project.glob("pipeline/start/templates/project/*.yml.j2"),
    ]
    used = [
        line.split("uses:")[1].split()
        for file in files
        for line in file.read_text().splitlines()
        if "uses:" in line
    ]
    actions = [words[0] for words in used if not words[0].startswith("./")]
    assert actions
    assert [action for action in actions if len(action.partition("@")[2]) != 40] == []


def test_image_of_a_release_is_labelled_with_its_commit(workflow):
    [build] = [step["run"] for step in workflow("release.yml")["jobs"]["image"]["steps"] if "run" in step]
    assert '--build-arg REVISION="$GITHUB_SHA"' in build
