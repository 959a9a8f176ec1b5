"""Text of unknown origin (cells, file names, exceptions) made safe for a terminal."""


def printable(text: str) -> str:
    """The same text with control characters written out, so that no terminal obeys them; lines stay."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode("ascii") for c in text
    )
