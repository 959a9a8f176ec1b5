"""Makes text of unknown origin (cells, file names, exceptions) safe for a terminal, and prints it."""

import re
import sys

from slipway.components.escaped_text import escaped

# ECMA-48: control sequences (colours, moves), operating system commands (titles, links), and short escapes.
_CONTROL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")


def plain_log(text: str) -> str:
    """Return a log as it appeared on a terminal: without colours, with the last state of redrawn lines.

    Args:
        text: the log; it may begin or end within a control sequence, the rest of which is escaped.
    """
    lines = _CONTROL_SEQUENCE.sub("", text).replace("\r\n", "\n").split("\n")
    last_states = (line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return printable("\n".join(last_states).replace("\t", "    "))


def printable(text: str) -> str:
    """Escape control characters, except line breaks, so that no terminal obeys them."""
    return escaped(text, but="\n")


def say(*lines: str) -> None:
    """Print lines to stderr, safe for a terminal."""
    for line in lines:
        print(printable(line), file=sys.stderr, flush=True)
