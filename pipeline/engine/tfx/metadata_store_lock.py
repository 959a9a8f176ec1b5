"""Makes nodes access ML Metadata's SQLite file one at a time.

If another process is writing, ML Metadata's client finds the file locked and sleeps: two seconds on
average, up to five times; after that the node fails. A call takes milliseconds, so waiting for a turn is
much shorter.
"""

import contextlib
import fcntl
import functools
import os
from collections.abc import Iterator
from typing import Any


def serialize_store_calls(store: Any) -> None:
    """Make this process and its later forks call the store one at a time.

    Args:
        store: the class `ml_metadata.MetadataStore`.
    """
    if hasattr(store._pywrap_cc_call, "original"):
        return
    # The constructor also reads the file, and creates missing tables.
    for name in ("_pywrap_cc_call", "__init__"):
        setattr(store, name, _in_turn(getattr(store, name), turns()))


@functools.cache
def turns() -> str:
    """Return the file that is locked, the same one in this process and in those that it forks from now on.

    An unnamed file leaves nothing behind, and the kernel releases the lock of a killed process.
    """
    return f"/proc/self/fd/{os.memfd_create('store-turns')}"


def _in_turn(original: Any, file: str) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        with _turn(file):
            return original(*args, **options)

    call.original = original  # type: ignore[attr-defined]
    return call


@contextlib.contextmanager
def _turn(file: str) -> Iterator[None]:
    # Opened anew each time: a lock belongs to the open file description, which forks share.
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
