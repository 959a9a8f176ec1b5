"""Tells the user that an object store is being waited for, which may take minutes."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from slipway.components.escaped_text import escaped
from slipway.components.progress import PROGRESS_VARIABLE, report

FIRST_S = 5.0
"""Seconds after which a wait is told; each pause after that is twice as long, up to `LONGEST_S`."""
LONGEST_S = 40.0


@contextmanager
def told_wait(
    address: str, *, limit_s: float | None = None, arrived: Callable[[], int] = lambda: 0
) -> Iterator[None]:
    """Tell now and then that the block, a request to a store, is waited for: what, and for how long.

    It is told beside the running node or, without an engine, on stderr.

    Args:
        address: of what is asked for.
        limit_s: after how many seconds without an answer the store is given up; None: unknown.
        arrived: how much has arrived, in any unit; while it grows, nothing is told.
    """
    done = threading.Event()

    def tell() -> None:
        began, before, pause_s = time.monotonic(), arrived(), FIRST_S
        while not done.wait(pause_s):
            if (now := arrived()) != before:
                began, before, pause_s = time.monotonic(), now, FIRST_S
                continue
            pause_s = min(2 * pause_s, LONGEST_S)
            limit = f"; given up after about {limit_s:.0f} s without an answer" if limit_s else ""
            _say(f"waiting for {escaped(address)}, {time.monotonic() - began:.0f} s so far{limit}")

    thread = threading.Thread(target=tell, daemon=True, name="told_wait")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _say(words: str) -> None:
    if os.environ.get(PROGRESS_VARIABLE):
        report(words)
    else:
        print(words, file=sys.stderr, flush=True)
