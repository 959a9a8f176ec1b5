"""Commands for the user to paste, in a form that works in his current shell."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from slipway.components.project import IS_CHECKOUT, PROJECT_ROOT

# The project's own folder: a command called from another folder must not begin a second history.
DEFAULT_OUTPUT = PROJECT_ROOT / "output"
DEFAULT_KEEP = 10  # runs of each pipeline that gc keeps

LOCAL, CLOUD = "local_runner.py", "cloud_runner.py"
SLIPWAY = "slipway"
"""The installed command: it has the commands of both."""


def default_workload(project: Path) -> Path:
    """The workload where none is named: taxi, or else the only one; where there are several, none."""
    taxi = Path("workloads/taxi/workload.yaml")
    if (project / taxi).is_file():
        return taxi
    found = [file.relative_to(project) for file in project.glob("workloads/*/workload.yaml")]
    return found[0] if len(found) == 1 else Path()


DEFAULT_WORKLOAD = default_workload(PROJECT_ROOT)


def command(*words: str, output: Path | None = None, program: str = LOCAL) -> str:
    """A command to paste, e.g. `.venv/bin/python local_runner.py resume 2026 --output /tmp/out`.

    Where Slipway is installed, `slipway resume 2026`; of the cloud's commands, `slipway cloud submit`.

    Args:
        output: the output folder that it is about; left out where it is the default one.
    """
    line = shlex.join(words)
    if output is not None and output.absolute() != DEFAULT_OUTPUT.absolute():
        line += f" --output {shlex.quote(str(output))}"
    return f"{_prefix(program)} {line}"


def program_name() -> str:
    """How the program is called in a document that is read on any machine."""
    return SLIPWAY if _is_slipway() else f"python {LOCAL}"


def same_command() -> str:
    """The command that runs now, to be run again."""
    begin = _slipway() if _is_slipway() else [_interpreter(), sys.argv[0]]
    return shlex.join([*begin, *sys.argv[1:]])


def image_command(image: str = "", *, target: str = "") -> str:
    """The command that builds the project's container image.

    Args:
        image: its name and tag; empty: the user is yet to choose them.
        target: stage of the Dockerfile; empty: the last one.
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
    """Whether the installed command is the one to type: it runs now, or there are no runners."""
    return Path(sys.argv[0]).name == SLIPWAY or not IS_CHECKOUT


def _slipway() -> list[str]:
    """The words that call the installed command."""
    called = Path(sys.argv[0])
    if called.name == SLIPWAY and called.parent != Path():  # how it was called, e.g. by a link to it
        return [_from_here(called.absolute(), names=[SLIPWAY])]
    if shutil.which(SLIPWAY) == str(Path(sys.executable).with_name(SLIPWAY)):
        return [SLIPWAY]
    return [_interpreter(), "-m", SLIPWAY]


def _interpreter() -> str:
    return _from_here(Path(sys.executable), names=["python", "python3"])


def _from_here(program: Path, *, names: Iterable[str]) -> str:
    """How a program is called from the current folder: by a name on the PATH, or by its path."""
    # Compared as written: an environment's interpreter is a link to one that lacks its packages.
    for name in names:
        if shutil.which(name) == str(program):
            return name
    here = os.path.relpath(program)
    return str(program) if here.startswith("..") else here
