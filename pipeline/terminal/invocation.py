"""Commands for the user to paste, in a form that works in his current shell."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from slipway.pipeline.root import PROJECT_ROOT

DEFAULT_WORKLOAD = Path("workloads/taxi/workload.yaml")
# The project's own folder: a command called from another folder must not begin a second history.
DEFAULT_OUTPUT = PROJECT_ROOT / "output"
DEFAULT_KEEP = 10  # runs of each pipeline that gc keeps

LOCAL, CLOUD = "local_runner.py", "cloud_runner.py"


def command(*words: str, output: Path | None = None, program: str = LOCAL) -> str:
    """A command to paste, e.g. `.venv/bin/python local_runner.py resume 2026 --output /tmp/out`.

    Args:
        words: the command and its arguments.
        output: the output folder that it is about; left out where it is the default one.
        program: whose command.
    """
    line = shlex.join(words)
    if output is not None and output.absolute() != DEFAULT_OUTPUT.absolute():
        line += f" --output {shlex.quote(str(output))}"
    return f"{_prefix(program)} {line}"


def same_command() -> str:
    """The command that runs now, to be run again."""
    return shlex.join([_interpreter(), *sys.argv])


def _prefix(program: str) -> str:
    script = Path(sys.argv[0])
    if script.name not in (LOCAL, CLOUD):
        return f"python {program}"  # called from a notebook or a test
    return shlex.join([_interpreter(), str(script.with_name(program))])


def _interpreter() -> str:
    # Compared as written: an environment's interpreter is a link to one that lacks its packages.
    for name in ("python", "python3"):
        if shutil.which(name) == sys.executable:
            return name
    here = os.path.relpath(sys.executable)
    return sys.executable if here.startswith("..") else here
