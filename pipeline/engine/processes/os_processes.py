"""Linux processes: end with the parent, find and kill leftovers."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# A killed process is gone within milliseconds, unless it is blocked in the kernel; waiting longer is useless.
_KILL_LIMIT_S = 5.0

# Set in the environment of every process of a run, so that leftovers of a killed engine can be found.
RUN_VARIABLE = "SLIPWAY_RUN_DIR"


def die_with_parent(signum: int, *, parent: int) -> None:
    """Have the kernel send `signum` to this process when its parent ends; exit if the parent is already gone.

    Args:
        signum: e.g. `signal.SIGKILL`.
        parent: the parent's process id, taken before the fork.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Make this process, instead of init, the parent of all descendants whose own parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def join_group(group: int, *, parent: int) -> None:
    """Begin a forked process: it joins a group, ends with its parent, and keeps its descendants.

    The parent's handlers of signals are undone.

    Args:
        group: the group's id; 0 for one of its own.
        parent: as for `die_with_parent`.
    """
    os.setpgid(0, group)
    die_with_parent(signal.SIGKILL, parent=parent)
    adopt_orphans()
    signal.set_wakeup_fd(-1)
    for signum in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(signum, signal.SIG_DFL)


def children(parent: int) -> Iterator[int]:
    """Yield the process ids of a parent's children, including zombies."""
    for pid in _processes():
        fields = _stat(pid)
        if fields and int(fields[1]) == parent:
            yield pid


def is_stopped(pid: int) -> bool:
    """Return True if the process is stopped (SIGSTOP or a terminal's ^Z); False if it is gone."""
    return _stat(pid)[:1] == ["T"]


def signal_group(group: int, signum: int) -> bool:
    """Send a signal to every process of a group (0 only checks); return False if none is left."""
    try:
        os.killpg(group, signum)
    except (ProcessLookupError, PermissionError):  # the latter if the rest belongs to another user
        return False
    return True


def leftovers(folder: Path) -> Iterator[int]:
    """Yield the process ids that belong to the run of that folder or of one below it, except the caller's.

    A process is found by the variable in its environment, so a recycled process id is never mistaken for
    one of ours. One in a container may have another folder at the same path.
    """
    own = f"{RUN_VARIABLE}={folder.resolve()}".encode()
    for pid in _processes():
        if pid == os.getpid():
            continue
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue  # another user's, or gone since the listing
        is_named = any(variable == own or variable.startswith(own + b"/") for variable in environment)
        if is_named and _sees_same(pid, folder.resolve()):
            yield pid


def end_leftovers(folder: Path) -> int:
    """Kill what a run of that folder left behind, including stopped processes, and wait until it is gone.

    Returns:
        The number of processes that were killed.
    """
    ended: set[int] = set()
    until = time.monotonic() + _KILL_LIMIT_S
    # Repeat, because a process may fork between the listing and the kill.
    while (found := set(leftovers(folder))) and time.monotonic() < until:
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        ended |= found
        time.sleep(0.01)
    return len(ended)


def _sees_same(pid: int, folder: Path) -> bool:
    """Return False if the folder is another one, or there is none, where a process looks for it."""
    there = Path(f"/proc/{pid}/root{folder}")
    try:
        return there.samefile(folder) if folder.exists() else not there.exists()
    except OSError:  # the process has gone since
        return False


def _processes() -> Iterator[int]:
    for entry in os.listdir("/proc"):  # noqa: PTH208 (names are enough, several times a second)
        if entry.isdigit():
            yield int(entry)


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the command's name: state, parent, ...; empty if gone."""
    try:
        # The name is in parentheses and may itself contain some: the fields follow the last one.
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return line.rpartition(")")[2].split()
