"""Handles Ctrl-C while modules are still being imported: one line, and the documented exit code."""

import contextlib
import os
import signal

from slipway.pipeline.exit_codes import INTERRUPTED


def answer_at_once() -> None:
    """Make Ctrl-C end the process at once from now on: nothing has begun that could be left half done.

    If the shell has set SIGINT to be ignored, it stays ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def leave_to_command() -> None:
    """Restore Python's handling of Ctrl-C, for the command."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"error: interrupted before anything began\n")
    os._exit(INTERRUPTED)
