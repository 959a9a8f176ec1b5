"""The command `warm`: a process that has imported TFX, for the runs that follow."""

from slipway.pipeline.engine.processes import standby
from slipway.pipeline.terminal.invocation import command


def begin(minutes: float) -> str:
    """Starts the process, where there is none yet; returns what to tell.

    Raises:
        UsageError: the folder for its socket is not safe.
    """
    pid = standby.begin(60 * minutes)
    return (
        f"Process {pid} imports TFX for the runs that begin in this folder and terminal; it ends when none "
        f"has used it for {minutes:g} minutes.\nhint: to end it now: {command('warm', '--end')}"
    )


def end() -> str:
    """Ends all such processes of this user that no run uses; returns what to tell.

    Raises:
        UsageError: the folder of their sockets is not safe.
    """
    ended, used = standby.end()
    told = f"Ended: {len(ended) or 'none'}"
    return f"{told}; used by a run, and left alone: {', '.join(map(str, used))}" if used else told
