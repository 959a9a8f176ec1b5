"""Text of unknown origin (cells, file names, exceptions) with its control characters written out."""


def escaped(text: str, *, but: str = "") -> str:
    """The text on one line, with nothing in it that a terminal obeys.

    Args:
        but: control characters that stay as they are.
    """
    return "".join(
        c if c.isprintable() or c in but else c.encode("unicode_escape").decode("ascii") for c in text
    )
