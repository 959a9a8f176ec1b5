"""Ctrl-C while a command line is still being imported: ends in one line and the documented exit code."""

import contextlib
import os
import signal

from slipway.pipeline.exit_codes import INTERRUPTED


def answer_at_once() -> None:
    """Makes Ctrl-C end the process from here on: nothing has begun that could be left half done.

    Where the shell has it ignored, it stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def leave_to_command() -> None:
    """Leaves Ctrl-C to the command from here on."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"error: interrupted before anything began\n")
    os._exit(INTERRUPTED)
