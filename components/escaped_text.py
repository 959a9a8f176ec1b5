"""Makes text of unknown origin (cells, file names, exceptions) fit for a message: escaped, and short."""

_SHOWN_LETTERS = 40


def escaped(text: str, *, but: str = "") -> str:
    """Return the text on one line, with everything that a terminal would interpret escaped.

    Args:
        but: control characters to leave unescaped.
    """
    return "".join(
        c if c.isprintable() or c in but else c.encode("unicode_escape").decode("ascii") for c in text
    )


def short(name: object) -> str:
    """Return a name, such as a class's, of which only the first 40 letters are shown."""
    text = str(name)
    return text if len(text) <= _SHOWN_LETTERS else f"{text[: _SHOWN_LETTERS - 3]}..."
