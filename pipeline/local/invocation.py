"""The commands that messages tell the user to paste, as they work in the shell that he is in."""

import os
import shlex
import shutil
import sys
from pathlib import Path

DEFAULT_OUTPUT = Path("output")


def command(*words: str, output: Path | None = None) -> str:
    """A command of local_runner.py, e.g. `.venv/bin/python local_runner.py resume 2026 --output /tmp/out`.

    Args:
        words: the command and its arguments.
        output: the output folder that it is about; left out where it is the default one.
    """
    line = shlex.join(words)
    if output is not None and output.absolute() != DEFAULT_OUTPUT.absolute():
        line += f" --output {shlex.quote(str(output))}"
    return f"{_prefix()} {line}"


def _prefix() -> str:
    script = sys.argv[0]
    if Path(script).name != "local_runner.py":
        return "python local_runner.py"  # called from a notebook or a test
    return shlex.join([_interpreter(), script])


def _interpreter() -> str:
    # Compared as written: an environment's interpreter is a link to one that lacks its packages.
    for name in ("python", "python3"):
        if shutil.which(name) == sys.executable:
            return name
    here = os.path.relpath(sys.executable)
    return sys.executable if here.startswith("..") else here
