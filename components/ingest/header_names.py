"""What the names of a CSV's columns must be: all there, and each once. Pure."""

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"-?\d*\.?\d+")


def names_problem(names: Sequence[str]) -> tuple[str, str] | None:
    """What is wrong with the names, and the remedy; None where nothing is."""
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        if not name.strip():
            remedy = "name it in the header, or leave it out (pandas: to_csv(..., index=False))"
            return f"column {index + 1} has no name", remedy
        if places.setdefault(name, index) < index:
            remedy = "rename one of them; only one would be read"
            if _NUMBER.fullmatch(name.strip()):
                remedy = "if the file has no header, put a line with names above its rows"
            return f"two columns are named {name!r} ({places[name] + 1} and {index + 1})", remedy
    return None
