"""Checks that the columns of a CSV are all named, each once. Pure."""

import re
from collections.abc import Sequence

INDEX = "(index)"
"""The name given to an unnamed first column: the row index, as pandas' `to_csv` writes it."""
INDEX_TOLD = (
    "the first column has no name, so it is taken as the row index and is not a feature; to make it one, "
    f"name it in data.columns as {INDEX!r}, or in data.split_by.key to split by it"
)
_NUMBER = re.compile(r"-?\d*\.?\d+")


def with_index(header: Sequence[str]) -> tuple[str, ...]:
    """The names of a header; INDEX for the first of several, where it has none.

    Any other unnamed column could be anything.
    """
    if len(header) > 1 and not header[0].strip():
        return (INDEX, *header[1:])
    return tuple(header)


def names_problem(names: Sequence[str]) -> tuple[str, str] | None:
    """Return what is wrong with the names, and the remedy; None if nothing is.

    Args:
        names: as `with_index` gives them.
    """
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        if not name.strip():
            remedy = (
                "name it in the header, which is the first line: remove a title or `sep=;` above it; "
                "only the first may be unnamed, as the row index"
            )
            return f"column {index + 1} has no name", remedy
        if places.setdefault(name, index) < index:
            remedy = "rename one of them; only one would be read"
            if _NUMBER.fullmatch(name.strip()):
                remedy = "if the file has no header, put a line with names above its rows"
            return f"two columns are named {name!r} ({places[name] + 1} and {index + 1})", remedy
    return None
