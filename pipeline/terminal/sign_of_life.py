"""Prints what a command does, and from time to time that it still does it, until it is done."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

from slipway.pipeline.terminal.durations import seconds
from slipway.pipeline.terminal.printable import printable

# People wonder after five seconds, and CI systems end jobs that are silent for too long.
TERMINAL_SILENCE_S, LOG_SILENCE_S = 4.0, 25.0


@contextlib.contextmanager
def sign_of_life(what: str) -> Iterator[None]:
    """Prints `what` on stderr, and again with the elapsed time whenever that gets long.

    It goes on telling where a library is kept from writing to stderr meanwhile.

    Args:
        what: is being done, as `taxi version 3: predicts rows.csv`.
    """
    sys.stderr.flush()
    own = os.dup(2)
    done = threading.Event()
    silence_s = TERMINAL_SILENCE_S if os.isatty(own) else LOG_SILENCE_S
    began = time.monotonic()

    def tell(line: str) -> None:
        with contextlib.suppress(OSError):  # the reader is gone; the work continues
            os.write(own, f"{printable(line)}\n".encode())

    def go_on() -> None:
        while not done.wait(silence_s):
            tell(f"  still working, {seconds(time.monotonic() - began)}")

    tell(what)
    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        os.close(own)
