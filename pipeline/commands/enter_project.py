"""Lets the installed command work in the project that contains the current folder."""

import os
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from slipway.components.project import INSTALL, PROJECT_ROOT, PROJECT_VARIABLE, find_project, is_project
from slipway.pipeline.errors import UsageError

_ANYWHERE = frozenset({"init", "doctor"})
"""The commands that need neither a project nor TFX."""
_NO_COMMAND = frozenset({"--help", "--install-completion", "--show-completion", "_SLIPWAY_COMPLETE"})
"""Options, and a variable by which a shell requests completions, that run no command."""


def enter_project(words: Sequence[str]) -> None:
    """Make the project's modules importable, and pass the project on to child processes.

    The project comes last in `sys.path`: a `csv.py` beside the data must not replace the standard library's.

    Args:
        words: the command line's arguments, without the program.

    Raises:
        UsageError: the command needs a project and there is none, or TFX is not installed.
    """
    named = os.environ.get(PROJECT_VARIABLE)
    is_one = is_project(PROJECT_ROOT) if named else find_project(PROJECT_ROOT) == PROJECT_ROOT
    if is_one:
        sys.path.append(str(PROJECT_ROOT))
        os.environ[PROJECT_VARIABLE] = str(PROJECT_ROOT)
    if {*words[:1]} & _ANYWHERE or _NO_COMMAND & {*words, *os.environ}:
        return
    if not is_one and named:
        raise UsageError(
            f"{PROJECT_VARIABLE} ({named}) names no project: {PROJECT_ROOT} has no pyproject.toml with "
            "[tool.slipway].",
            hint="name the project's own folder",
        )
    planted = next(filter(is_project, (PROJECT_ROOT, *PROJECT_ROOT.parents)), None)
    if not is_one and planted:
        raise UsageError(
            f"{PROJECT_ROOT} is in no project of yours: {planted / 'pyproject.toml'} is another user's, in a "
            "folder that everybody may write to, and a project is code that is run.",
            hint=f"work elsewhere; if you trust it: export {PROJECT_VARIABLE}={shlex.quote(str(planted))}",
        )
    if not is_one:
        raise UsageError(
            f"{PROJECT_ROOT} is in no project: neither it nor a folder above has a pyproject.toml with "
            "[tool.slipway].",
            hint="go to your project's folder, or make one: slipway init my-project",
        )
    if find_spec("tfx") is None:
        raise UsageError(f"TFX is not installed for {sys.executable}.", hint=f"in {PROJECT_ROOT}: {INSTALL}")
