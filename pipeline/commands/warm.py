"""The command `warm`: starts a process that imports TFX ahead of the runs that follow.

At a terminal each command that a run usually follows (`new`, `plan`, a run itself) leaves such a process
behind for some minutes: there, people read, edit and run.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping

from slipway.pipeline.engine.processes import standby
from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.terminal.printable import say

MINUTES_VARIABLE = "SLIPWAY_WARM_MINUTES"
"""The variable with the minutes that a process left by a command waits to be used; 0: none is left."""
MOST_MINUTES = 1440
MINUTES_AT_A_TERMINAL = 5
"""Used if the variable is not set, and stderr is a terminal; elsewhere it is 0."""
_NUMBER = re.compile(r"[0-9]{1,4}(\.[0-9]+)?", re.ASCII)


def minutes_left(environment: Mapping[str, str], *, at_terminal: bool) -> float:
    """Return the minutes that the process left by a command waits; 0, as always in CI: no process is left.

    Args:
        environment: the variables.
        at_terminal: whether a terminal shows what the command reports.

    Raises:
        UsageError: the variable does not hold a number in the allowed range.
    """
    default = MINUTES_AT_A_TERMINAL if at_terminal else 0
    written = environment.get(MINUTES_VARIABLE, "").strip() or str(default)
    minutes = float(written) if _NUMBER.fullmatch(written) else -1
    if not 0 <= minutes <= MOST_MINUTES:
        raise UsageError(
            f"{MINUTES_VARIABLE} is {written!r}; it must be a number of minutes from 0 to {MOST_MINUTES}.",
            hint=f"export {MINUTES_VARIABLE}=15; or 0: then no command leaves a warm process",
        )
    return 0 if environment.get("CI", "false") == "true" else minutes


def leaving() -> Callable[[], None]:
    """Return what a command calls at its end: it leaves a process if the minutes ask for it, and says so.

    Raises:
        UsageError: the variable is wrong. So a command that calls this first has done nothing yet.
    """
    at_terminal = sys.stderr.isatty()
    minutes = minutes_left(os.environ, at_terminal=at_terminal)

    def at_end() -> None:
        # Nobody goes on at a terminal that was closed meanwhile.
        if minutes and sys.stderr.isatty() == at_terminal and (line := leave(minutes)):
            say(line)

    return at_end


def leave(minutes: float) -> str:
    """Start the process after a command if there is none yet; say so, or why it could not be started.

    Returns:
        One line for the user; empty if there was one already.
    """
    try:
        there = standby.waiting()
        pid = standby.begin(60 * minutes)
    except UsageError as error:
        return f"warning: no warm process is left: {error.message} {error.hint}"
    except OSError as error:  # the command is complete, whatever else goes wrong here
        return f"warning: no warm process is left: {error}"
    if pid in there:
        return ""
    return (
        f"Process {pid} imports TFX for the next runs and ends {minutes:g} minutes after the last; at once "
        f"by {command('warm', '--end')}, and {MINUTES_VARIABLE}=0 leaves none"
    )


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
