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
    # An unnamed file leaves nothing behind, and the kernel releases the lock of a killed process.
    turns = f"/proc/self/fd/{os.memfd_create('store-turns')}"
    # The constructor also reads the file, and creates missing tables.
    for name in ("_pywrap_cc_call", "__init__"):
        setattr(store, name, _in_turn(getattr(store, name), turns))


def _in_turn(original: Any, turns: str) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        with _turn(turns):
            return original(*args, **options)

    call.original = original  # type: ignore[attr-defined]
    return call


@contextlib.contextmanager
def _turn(turns: str) -> Iterator[None]:
    # Opened anew each time: a lock belongs to the open file description, which forks share.
    descriptor = os.open(turns, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
