"""Text of unknown origin (cells, file names, exceptions) made safe for a terminal."""

import re

from slipway.components.escaped_text import escaped

# ECMA-48: control sequences (colours, moves), operating system commands (titles, links), and short escapes.
_CONTROL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")


def plain_log(text: str) -> str:
    """A log as a reader saw it: without colours, and only the last state of a redrawn line.

    Args:
        text: may begin or end within a sequence; what is left of one is written out.
    """
    lines = _CONTROL_SEQUENCE.sub("", text).replace("\r\n", "\n").split("\n")
    last_states = (line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return printable("\n".join(last_states).replace("\t", "    "))


def printable(text: str) -> str:
    """The same text with control characters escaped, so that no terminal obeys them; lines stay."""
    return escaped(text, but="\n")
