"""The user's own command after a push, e.g. to notify a server or a person."""

import os
import subprocess
from collections.abc import Mapping, Sequence

from slipway.components.errors import ComponentError
from slipway.components.project import PROJECT_ROOT
from slipway.components.pusher.versions import Published

LIMIT_S = 600.0
"""Time limit of the command."""


def run_hook(
    command: Sequence[str], published: Published, *, workload: str, limit_s: float = LIMIT_S
) -> None:
    """Run the command in the project's folder, without a shell; wait for it. Its output goes where ours goes.

    It runs again when the push is repeated, so it must tolerate that.

    Args:
        command: program and arguments; empty: nothing is run.
        published: the version; in the command's environment as SLIPWAY_VERSION and SLIPWAY_VERSION_PATH.
        workload: its name; in the command's environment as SLIPWAY_WORKLOAD.
        limit_s: time after which the command is killed.

    Raises:
        ComponentError: the command cannot be started, fails or takes too long; the version stays pushed.
    """
    if not command:
        return
    told: Mapping[str, str] = {
        "SLIPWAY_VERSION": str(published.version),
        "SLIPWAY_VERSION_PATH": published.address,
        "SLIPWAY_WORKLOAD": workload,
    }
    pushed = f"version {published.version} is pushed, but push.hook"
    again = "fix it, then resume the run"
    try:
        # No input: a command that prompts would wait forever.
        finished = subprocess.run(
            list(command),
            cwd=PROJECT_ROOT,
            env={**os.environ, **told},
            stdin=subprocess.DEVNULL,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ComponentError(
            f"{pushed} {command[0]!r} took longer than {limit_s:g} s.", hint=again
        ) from error
    except (OSError, ValueError) as error:
        raise ComponentError(f"{pushed} {command[0]!r} cannot be started: {error}.", hint=again) from error
    if finished.returncode:
        raise ComponentError(f"{pushed} {command[0]!r} ended with code {finished.returncode}.", hint=again)
