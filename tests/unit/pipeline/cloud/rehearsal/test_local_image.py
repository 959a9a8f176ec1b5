"""Whether Podman or Docker has the image, and of which code it is. A script stands for either."""

import json
import os
from pathlib import Path

import pytest

from slipway.pipeline.cloud.container.code_digest import digest_of
from slipway.pipeline.cloud.image_contents import Image
from slipway.pipeline.cloud.rehearsal.local_image import check_image_sources, find_image
from slipway.pipeline.errors import UsageError


def test_the_program_is_the_one_that_has_the_image_podman_first(program, tmp_path):
    docker = program("echo sha256:12", name="docker")
    assert find_image("i:1", path=str(tmp_path)) == (docker, "sha256:12")
    podman = program('[ "$5" = i:1 ] && echo 34')
    assert find_image("i:1", path=str(tmp_path)) == (podman, "34")
    assert find_image("i:2", path=str(tmp_path)) == (docker, "sha256:12")
    program("exit 1", name="docker")
    program("echo 'Error: i:2: image not known' >&2; exit 125")
    with pytest.raises(
        UsageError, match=r"i:2: podman has no such image; docker has no such image\."
    ) as caught:
        find_image("i:2", path=str(tmp_path))
    assert caught.value.hint.startswith("podman build --tag i:2 .")
    program("echo 'Cannot connect to the Docker daemon.' >&2; exit 1", name="docker")
    with pytest.raises(
        UsageError, match=r"such image; docker does not answer \(Cannot connect to the Docker"
    ):
        find_image("i:2", path=str(tmp_path))
    with pytest.raises(UsageError, match="neither podman nor docker"):
        find_image("i:1", path="/nowhere")


@pytest.fixture
def image(tmp_path):
    (tmp_path / "a.py").write_text("1")
    return Image(root=tmp_path, files=frozenset({"a.py"}), packages=Path("/packages"))


def test_image_of_the_checkout_s_code_tells_its_user(program, image):
    told = {"user": 7, "sources": digest_of(image.root, image.files)}
    found = check_image_sources(program(f"echo '{json.dumps(told)}'"), "12ab", image, name="i:1")
    assert found["user"] == 7


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("echo boom >&2; exit 125", "i:1: a container of it does not report its content: boom"),
        (
            """echo '{"user": 1, "sources": "x"}'""",
            "i:1: podman's image of that name does not hold this folder's code.",
        ),
    ],
)
def test_image_that_cannot_stand_for_the_checkout_is_refused_with_the_command_that_makes_one(
    program, image, line, message
):
    with pytest.raises(UsageError, match=message) as caught:
        check_image_sources(program(line), "12ab", image, name="i:1")
    assert "make image IMAGE=i:1 BUILDER=podman" in caught.value.hint


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (
            "Error: keep-id requires additional UIDs or GIDs defined in /etc/subuid and /etc/subgid",
            "100000-165535 ada && podman system migrate",
        ),
        ("Error: crun: the requested cgroup controller `cpu` is not available", "rootlesscontaine.rs"),
    ],
)
def test_what_podman_lacks_without_root_is_told_with_its_remedy_before_a_run(
    program, image, monkeypatch, said, hint, tmp_path
):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os, "getgid", lambda: 100)
    monkeypatch.setenv("LOGNAME", "ada")
    with pytest.raises(UsageError, match="Error: ") as caught:
        check_image_sources(program(f"echo '{said}' >&2; exit 125"), "12ab", image, name="i:1")
    assert hint in caught.value.hint
    # Asked as a task's container will be.
    asked = (tmp_path / "asked").read_text()
    assert "--user 1000:100 --userns keep-id --memory 512000000 --memory-swap 512000000 --cpus 1" in asked


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_a_user_without_a_name_is_told_by_its_number_that_podman_needs_one(
    program, image, monkeypatch, error
):
    def nameless():
        raise error("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    with pytest.raises(UsageError, match="additional UIDs") as caught:
        check_image_sources(
            program("echo 'keep-id requires additional UIDs' >&2; exit 125"), "12ab", image, name="i:1"
        )
    assert caught.value.hint.startswith("user 1234 has no name on this machine")


def test_limits_that_podman_ignores_are_told(program, image, capsys):
    told = json.dumps({"user": 7, "sources": digest_of(image.root, image.files)})
    said = "Resource limits are not supported and ignored on cgroups V1 rootless systems"
    check_image_sources(program(f"echo '{told}'; echo '{said}' >&2"), "12ab", image, name="i:1")
    assert f"podman gives the tasks all memory and cores of this machine: {said}" in capsys.readouterr().err
