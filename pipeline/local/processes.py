"""Processes as Linux sees them: who dies with whom, who is left over, what a group is told."""

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

# linux/prctl.h
_PR_SET_PDEATHSIG = 1

# Every process of a run carries this variable, so that what a killed engine leaves behind can be found.
RUN_VARIABLE = "SLIPWAY_RUN_DIR"


def die_with_parent(signum: int, *, parent: int) -> None:
    """Asks the kernel to send this process `signum` when its parent ends; ends it now if that is gone already.

    Args:
        signum: e.g. `signal.SIGKILL`.
        parent: the parent's process id, taken before the fork.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def signal_group(group: int, signum: int) -> bool:
    """Sends a signal to every process of a group; False where none is left."""
    try:
        os.killpg(group, signum)
    except ProcessLookupError:
        return False
    return True


def leftovers(output: Path) -> Iterator[int]:
    """Process ids of processes that belong to a run under `output`, other than this process's own.

    Reads /proc: a process is found by the variable in its environment, so a recycled process id is never
    mistaken for one of ours.
    """
    prefix = f"{RUN_VARIABLE}={output}/".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # another user's, or gone since the listing
        if any(variable.startswith(prefix) for variable in environment.split(b"\0")):
            yield int(entry.name)


def end_leftovers(output: Path) -> int:
    """Kills what an earlier run under `output` left behind, also what is stopped; returns how many."""
    count = 0
    for pid in leftovers(output):
        try:
            os.kill(pid, signal.SIGKILL)
            count += 1
        except ProcessLookupError:
            continue
    return count


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped (SIGSTOP or a terminal's ^Z); False where it is gone."""
    try:
        # The state is the first field after the command name, which stands in parentheses.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False
