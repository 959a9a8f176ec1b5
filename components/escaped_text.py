"""Escapes control characters in text of unknown origin (cells, file names, exceptions)."""


def escaped(text: str, *, but: str = "") -> str:
    """Return the text on one line, with everything that a terminal would interpret escaped.

    Args:
        but: control characters to leave unescaped.
    """
    return "".join(
        c if c.isprintable() or c in but else c.encode("unicode_escape").decode("ascii") for c in text
    )
