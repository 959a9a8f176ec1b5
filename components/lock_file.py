"""Locks for one process at a time: by an empty file that exists while it is held, or of a folder."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_S = 10.0
"""How long to wait for a lock that a process of Slipway holds for a moment only; another program, such as
`flock FOLDER COMMAND`, may hold it forever."""
_LOOK_S, _LONGEST_LOOK_S = 0.002, 0.02  # the pause before looking again grows
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold the lock for this process, without waiting; yield False if another process holds it.

    The kernel releases it when the process ends in any way; then the file stays, and is taken over. Where the
    file system has no locks, as some of networks and buckets, nobody is kept out.

    Args:
        path: of the file, in an existing folder.

    Raises:
        OSError: the file cannot be written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        is_held = _is_taken(descriptor, path)
        try:
            yield is_held
        finally:
            if is_held:
                path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(folder: Path, *, wait_s: float = 0.0) -> Iterator[bool]:
    """Try to lock a folder; yield False if another process holds the lock or the file system has no locks.

    Args:
        wait_s: how long to wait for the other process, in seconds.

    Raises:
        OSError: the folder cannot be read.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            is_locked = is_taken_in(wait_s, descriptor)
        except OSError:
            is_locked = False
        yield is_locked
    finally:
        os.close(descriptor)


def is_taken_in(wait_s: float, descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock of an open file or folder; return False if another process holds it all that time.

    Args:
        shared: whether others with a shared lock may hold it at the same time.

    Raises:
        OSError: the file system has no locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    until, pause_s = time.monotonic() + wait_s, _LOOK_S
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
        else:
            return True


def _is_taken(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its last holder may have removed the file after it was opened here; another may be there by now.
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return True
        raise
