"""Prints what a command is doing, and at intervals that it is still working."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

from slipway.pipeline.terminal.durations import seconds
from slipway.pipeline.terminal.printable import printable

# Users get impatient after five seconds, and CI systems end jobs that are silent for too long.
TERMINAL_SILENCE_S, LOG_SILENCE_S = 4.0, 25.0


@contextlib.contextmanager
def sign_of_life(what: str) -> Iterator[None]:
    """Print `what` to stderr, and then at intervals a line with the elapsed time.

    The lines are printed even while stderr is redirected to silence a library.

    Args:
        what: what is being done, such as `taxi version 3: predicts rows.csv`.
    """
    sys.stderr.flush()
    own = os.dup(2)
    done = threading.Event()
    silence_s = TERMINAL_SILENCE_S if os.isatty(own) else LOG_SILENCE_S
    began = time.monotonic()

    def tell(line: str) -> None:
        with contextlib.suppress(OSError):  # if the reader is gone, the work continues
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
