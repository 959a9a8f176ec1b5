"""Commands for the user to paste, in a form that works in the user's current shell."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from slipway.components.project import IS_CHECKOUT, PROJECT_ROOT

# In the project's folder, so that a command called from another folder does not begin a second history.
DEFAULT_OUTPUT = PROJECT_ROOT / "output"
DEFAULT_KEEP = 10  # runs of each pipeline that gc keeps

LOCAL, CLOUD = "local_runner.py", "cloud_runner.py"
SLIPWAY = "slipway"
"""The installed program, which has the commands of both runners."""


def default_workload(project: Path) -> Path:
    """Return the workload to use if none is named: taxi, or else the only one; empty if there are several."""
    taxi = Path("workloads/taxi/workload.yaml")
    if (project / taxi).is_file():
        return taxi
    found = [file.relative_to(project) for file in project.glob("workloads/*/workload.yaml")]
    return found[0] if len(found) == 1 else Path()


DEFAULT_WORKLOAD = default_workload(PROJECT_ROOT)


def command(*words: str, output: Path | None = None, program: str = LOCAL) -> str:
    """Return a command to paste, such as `.venv/bin/python local_runner.py resume 2026 --output /tmp/out`.

    If Slipway is installed, that is `slipway resume 2026`, or for cloud commands `slipway cloud submit`.

    Args:
        *words: the command and its arguments.
        output: the output folder to use; omitted from the command if it is the default.
        program: `LOCAL` or `CLOUD`.
    """
    line = shlex.join(words)
    if output is not None and output.absolute() != DEFAULT_OUTPUT.absolute():
        line += f" --output {shlex.quote(str(output))}"
    return f"{_prefix(program)} {line}"


def program_name() -> str:
    """Return the program's name for a document that may be read on any machine."""
    return SLIPWAY if _is_slipway() else f"python {LOCAL}"


def same_command() -> str:
    """Return the running command, to be run again."""
    begin = _slipway() if _is_slipway() else [_interpreter(), sys.argv[0]]
    return shlex.join([*begin, *sys.argv[1:]])


def image_command(image: str = "", *, target: str = "") -> str:
    """Return the command that builds the project's container image.

    Args:
        image: the image's name and tag; empty if the user has yet to choose them.
        target: the Dockerfile's stage; empty for the last one.
    """
    if IS_CHECKOUT:
        given = {"IMAGE": image, "TARGET": target}
        return shlex.join(["make", "image", *(f"{name}={value}" for name, value in given.items() if value)])
    stage = ["--target", target] if target else []
    return shlex.join(["docker", "build", "--tag", image or "NAME:TAG", *stage, "."])


def _prefix(program: str) -> str:
    script = Path(sys.argv[0])
    if _is_slipway():
        return shlex.join([*_slipway(), *(["cloud"] if program == CLOUD else [])])
    if script.name not in (LOCAL, CLOUD):
        return f"python {program}"  # called from a notebook or a test
    return shlex.join([_interpreter(), str(script.with_name(program))])


def _is_slipway() -> bool:
    """Return True if the user should type `slipway`: it is running now, or there are no runner scripts."""
    return Path(sys.argv[0]).name == SLIPWAY or not IS_CHECKOUT


def _slipway() -> list[str]:
    """Return the words that call the installed command."""
    called = Path(sys.argv[0])
    if called.name == SLIPWAY and called.parent != Path():  # called by a path, such as that of a link
        return [_from_here(called.absolute(), names=[SLIPWAY])]
    if shutil.which(SLIPWAY) == str(Path(sys.executable).with_name(SLIPWAY)):
        return [SLIPWAY]
    return [_interpreter(), "-m", SLIPWAY]


def _interpreter() -> str:
    return _from_here(Path(sys.executable), names=["python", "python3"])


def _from_here(program: Path, *, names: Iterable[str]) -> str:
    """Return the shortest way to call a program from the current folder: a name on the PATH, or its path."""
    # Links are not resolved: a venv's interpreter is a link to an interpreter that lacks its packages.
    for name in names:
        if shutil.which(name) == str(program):
            return name
    here = os.path.relpath(program)
    return str(program) if here.startswith("..") else here
