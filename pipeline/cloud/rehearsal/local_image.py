"""Checks that Podman or Docker has the image of a rehearsal, and that it holds this checkout's code."""

import getpass
import json
import os
import re
import shutil
import sys
from pathlib import Path

from slipway.pipeline.cloud.container.code_digest import Inside, digest_of
from slipway.pipeline.cloud.image_contents import Image
from slipway.pipeline.cloud.rehearsal.containers import (
    ANSWER_S,
    CLOSED,
    core_options,
    last_line,
    memory_options,
    output,
    user_options,
)
from slipway.pipeline.errors import UsageError

_PROGRAMS = ("podman", "docker")
_NO_IMAGE = re.compile("no such (image|object)|image not known", re.IGNORECASE)
_ASK_LIMIT_S = 120
_ASK_MEMORY_BYTES = 512_000_000
# What Podman says where it runs without root; Docker's daemon has root.
_NO_IDS = re.compile("subuid|additional UIDs", re.IGNORECASE)
_NO_CONTROLLER = re.compile("cgroup.* controller", re.IGNORECASE)
_IGNORED = re.compile("resource limits are not supported and ignored.*", re.IGNORECASE)
_DELEGATE = (
    "https://rootlesscontaine.rs/getting-started/common/cgroup2/ describes how root lets users limit memory "
    "and cores; or rehearse as root"
)


def find_image(name: str, *, path: str | None = None) -> tuple[str, str]:
    """Return the path of Podman or Docker, whichever has an image, and the image's id there.

    Args:
        path: where to look for the programs; None means PATH.

    Raises:
        UsageError: neither program is installed, or neither reports that it has the image.
    """
    programs = [found for program in _PROGRAMS if (found := shutil.which(program, path=path))]
    if not programs:
        raise UsageError(
            "--containers runs each task in a container, but neither podman nor docker is on the PATH.",
            hint="install one, for example: apt install podman; or leave --containers out",
        )
    told = []
    for program in programs:
        asked = output([program, "image", "inspect", "--format", "{{.Id}}", name])
        if asked.returncode == 0:
            return program, asked.stdout.strip()
        said = last_line(asked.stderr)
        is_answer = not said or _NO_IMAGE.search(said)
        told.append(f"{_title(program)} {'has no such image' if is_answer else f'does not answer ({said})'}")
    raise UsageError(f"{name}: {'; '.join(told)}.", hint=_how_to_make(name, programs[0]))


def check_image_sources(program: str, found: str, image: Image, *, name: str) -> Inside:
    """Check that an image holds the checkout's code; return what the image reports about itself.

    It asks in a container with the user and the kinds of limits of a task's: what this machine refuses is
    told before a run begins. If it ignores the limits, that is printed.

    Args:
        program, found: as `find_image` returns them.
        image: what the checkout's image would hold.
        name: the image's name for the user.

    Raises:
        UsageError: no container of the image starts, or the image holds other code.
    """
    alone = [*CLOSED, "--network", "none", *user_options(program)]
    alone += [*memory_options(_ASK_MEMORY_BYTES), *core_options(1), "--entrypoint", "timeout"]
    module = ["python", "-m", "slipway.pipeline.cloud.container.code_digest"]
    told = output(
        [program, "run", *alone, found, str(_ASK_LIMIT_S), *module], limit_s=_ASK_LIMIT_S + ANSWER_S
    )
    try:
        inside: Inside = json.loads(told.stdout)
    except ValueError:
        last = last_line(told.stderr or told.stdout) or f"exit code {told.returncode}"
        raise UsageError(
            f"{name}: a container of it does not report its content: {last}",
            hint=_remedy(last) or _how_to_make(name, program),
        ) from None
    if ignored := _IGNORED.search(told.stderr):
        print(
            f"{_title(program)} gives the tasks all memory and cores of this machine: {ignored[0]}",
            file=sys.stderr,
        )
    if inside["sources"] != digest_of(image.root, image.files):
        raise UsageError(
            f"{name}: {_title(program)}'s image of that name does not hold this folder's code.",
            hint=_how_to_make(name, program),
        )
    return inside


def _remedy(said: str) -> str:
    """Return what to do about an error of Podman without root; "" if it is another one."""
    if _NO_IDS.search(said):
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # by the Python's version
            return (
                f"user {os.getuid()} has no name on this machine, and ids are given by it: rehearse as a "
                "user of /etc/passwd, or as root"
            )
        return (
            f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user} && podman system "
            "migrate, with a range that no other user has in /etc/subuid; or rehearse as root"
        )
    return _DELEGATE if _NO_CONTROLLER.search(said) else ""


def _how_to_make(name: str, program: str) -> str:
    builder = _title(program)
    return f"{builder} build --tag {name} . (in a checkout: make image IMAGE={name} BUILDER={builder})"


def _title(program: str) -> str:
    return Path(program).name
