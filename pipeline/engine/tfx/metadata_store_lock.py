"""Makes nodes access ML Metadata's SQLite file one at a time.

If another process is writing, ML Metadata's client finds the file locked and sleeps: two seconds on
average, up to five times; after that the node fails. A call takes milliseconds, so waiting for a turn is
much shorter. Whoever holds the lock for longer is none of these processes, and is not waited for to the end.
"""

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slipway.components.lock_file import is_taken_in

_FIRST_WAIT_S, _WAIT_S = 2.0, 60.0


def serialize_store_calls(store: Any, file: str) -> None:
    """Make this process and its later forks call the store one at a time, and in turn with any other process
    that does so for the same file, such as another step in Airflow.

    Args:
        store: the class `ml_metadata.MetadataStore`; what an earlier call did to it is replaced.
        file: the SQLite file.
    """
    locked = _lockable(file)
    # The constructor also reads the file, and creates missing tables.
    for name in ("_pywrap_cc_call", "__init__"):
        usual = getattr(store, name)
        setattr(store, name, _in_turn(getattr(usual, "original", usual), locked))


@functools.cache
def turns() -> str:
    """Return a file to lock that is the same one in this process and in those that it forks from now on.

    An unnamed file leaves nothing behind, and the kernel releases the lock of a killed process.
    """
    return f"/proc/self/fd/{os.memfd_create('store-turns')}"


def _lockable(file: str) -> str:
    """Return what to lock: the file's folder, which leaves nothing behind either; `turns` where it cannot be
    locked, as on some network file systems, or as it is by the `flock FOLDER COMMAND` that began this run."""
    folder = str(Path(file).parent)
    try:
        with _turn(folder, wait_s=_FIRST_WAIT_S) as is_ours:
            return folder if is_ours else turns()
    except OSError:
        return turns()


def _in_turn(original: Any, locked: str) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        with _turn(locked):
            return original(*args, **options)

    call.original = original  # type: ignore[attr-defined]
    return call


@contextlib.contextmanager
def _turn(locked: str, *, wait_s: float = _WAIT_S) -> Iterator[bool]:
    """Wait for a turn; yield whether it came."""
    # Opened anew each time: a lock belongs to the open file description, which forks share.
    descriptor = os.open(locked, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield is_taken_in(wait_s, descriptor)
    finally:
        os.close(descriptor)
