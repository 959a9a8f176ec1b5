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


def test_nothing_is_released_before_the_tests_of_the_ci_have_passed(workflow):
    release = workflow("release.yml")["jobs"]
    assert release["tests"]["uses"] == "./.github/workflows/ci.yml"
    assert (release["wheel"]["needs"], release["image"]["needs"]) == ("tests", "wheel")
    # YAML 1.1 reads the key `on` as a truth value.
    assert "workflow_call" in workflow("ci.yml")[True]


def test_image_of_a_release_is_labelled_with_its_commit(workflow):
    [build] = [step["run"] for step in workflow("release.yml")["jobs"]["image"]["steps"] if "run" in step]
    assert '--build-arg REVISION="$GITHUB_SHA"' in build
