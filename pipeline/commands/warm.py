"""The command `warm`: a process that has imported TFX, for the runs that follow.

With an environment variable, each run leaves one.
"""

import re
from collections.abc import Mapping

from slipway.pipeline.engine.processes import standby
from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.invocation import command

MINUTES_VARIABLE = "SLIPWAY_WARM_MINUTES"
"""How long the process that a run leaves waits to be used; unset or 0: no run leaves one."""
MOST_MINUTES = 1440
_NUMBER = re.compile(r"[0-9]{1,4}(\.[0-9]+)?", re.ASCII)


def minutes_left(environment: Mapping[str, str]) -> float:
    """The minutes that the process left by a run is to wait; 0: none is left, as always in CI.

    Raises:
        UsageError: the variable holds no such number.
    """
    written = environment.get(MINUTES_VARIABLE, "").strip() or "0"
    minutes = float(written) if _NUMBER.fullmatch(written) else -1
    if not 0 <= minutes <= MOST_MINUTES:
        raise UsageError(
            f"{MINUTES_VARIABLE} is {written!r}; it must be a number of minutes from 0 to {MOST_MINUTES}.",
            hint=f"export {MINUTES_VARIABLE}=15; or unset it: then no run leaves a warm process",
        )
    return 0 if environment.get("CI", "false") == "true" else minutes


def leave(minutes: float) -> str:
    """Starts the process after a run, where there is none yet; returns why it could not, or nothing."""
    try:
        standby.begin(60 * minutes)
    except UsageError as error:
        return f"No warm process is left: {error.message}\nhint: {error.hint}"
    except OSError as error:  # the run is complete, whatever else goes wrong here
        return f"No warm process is left: {error}"
    return ""


def begin(minutes: float) -> str:
    """Starts the process, where there is none yet; returns what to tell.

    Raises:
        UsageError: the folder for its socket is not safe.
    """
    pid = standby.begin(60 * minutes)
    return (
        f"Process {pid} imports TFX for runs that start in this folder and terminal; it ends when none "
        f"has used it for {minutes:g} minutes.\nhint: to end it now: {command('warm', '--end')}"
    )


def end() -> str:
    """Ends all such processes of this user that no run uses; returns what to tell.

    Raises:
        UsageError: the folder of their sockets is not safe.
    """
    ended, used = standby.end()
    told = f"Ended: {len(ended) or 'none'}"
    return f"{told}; still used by a run: {', '.join(map(str, used))}" if used else told
