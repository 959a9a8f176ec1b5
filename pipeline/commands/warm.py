"""The command `warm`: starts a process that imports TFX ahead of the runs that follow.

With an environment variable, each run leaves such a process behind.
"""

import re
from collections.abc import Mapping

from slipway.pipeline.engine.processes import standby
from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.invocation import command

MINUTES_VARIABLE = "SLIPWAY_WARM_MINUTES"
"""The variable with the minutes that a process left by a run waits to be used; unset or 0: none is left."""
MOST_MINUTES = 1440
_NUMBER = re.compile(r"[0-9]{1,4}(\.[0-9]+)?", re.ASCII)


def minutes_left(environment: Mapping[str, str]) -> float:
    """Return the minutes that the process left by a run waits; 0, as always in CI: no process is left.

    Raises:
        UsageError: the variable does not hold a number in the allowed range.
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
    """Start the process after a run if there is none yet; return why that failed, or an empty string."""
    try:
        standby.begin(60 * minutes)
    except UsageError as error:
        return f"No warm process is left: {error.message}\nhint: {error.hint}"
    except OSError as error:  # the run is complete, whatever else goes wrong here
        return f"No warm process is left: {error}"
    return ""


def begin(minutes: float) -> str:
    """Start the process if there is none yet; return the message for the user.

    Raises:
        UsageError: the folder for its socket is not safe.
    """
    pid = standby.begin(60 * minutes)
    return (
        f"Process {pid} imports TFX for runs that start in this folder and terminal; it ends when none "
        f"has used it for {minutes:g} minutes.\nhint: to end it now: {command('warm', '--end')}"
    )


def end() -> str:
    """End all such processes of this user that no run uses; return the message for the user.

    Raises:
        UsageError: the folder of their sockets is not safe.
    """
    ended, used = standby.end()
    told = f"Ended: {len(ended) or 'none'}"
    return f"{told}; still used by a run: {', '.join(map(str, used))}" if used else told
