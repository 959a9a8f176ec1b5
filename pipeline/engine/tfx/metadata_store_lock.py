"""Makes nodes use ML Metadata's SQLite file one after the other.

Its client finds the file locked where another process writes, and then sleeps: two seconds in the mean, up to
five times, and after that the node fails. A call takes milliseconds, so a turn is awaited in less.
"""

import contextlib
import fcntl
import functools
import os
from collections.abc import Iterator
from typing import Any


def take_turns(store: Any) -> None:
    """Makes this process and its later forks call the store one at a time.

    Args:
        store: the class `ml_metadata.MetadataStore`.
    """
    if hasattr(store._pywrap_cc_call, "original"):
        return
    # An unnamed file: nothing is left of it, and a process that is killed gives its turn back.
    turns = f"/proc/self/fd/{os.memfd_create('store-turns')}"
    # Creating a store reads the file, too, and creates what is missing.
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
    # Opened again: a lock belongs to who opened the file, and forks share what was open before.
    descriptor = os.open(turns, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
