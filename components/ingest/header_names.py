"""Checks that all columns of a CSV have names, and that no name occurs twice. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

INDEX = "(index)"
"""The name given to an unnamed first column, which is the row index as pandas' `to_csv` writes it."""
INDEX_NOTE = (
    "the first column has no name, so it is taken as the row index and is not a feature; to make it one, "
    f"name it in data.columns as {INDEX!r}, or in data.split_by.key to split by it"
)
EMPTY_END = "(end of the row)"
"""The name in findings for empty, unnamed fields after the last column."""
EMPTY_END_NOTE = (
    "rows end with a delimiter and nothing after it, which adds no column; a row with a value "
    "there is in the quarantine"
)


def with_index(header: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a header, with INDEX for an unnamed first column if there are others.

    Any other unnamed column stays unnamed, since it could be anything.
    """
    if len(header) > 1 and not header[0].strip():
        return (INDEX, *header[1:])
    return tuple(header)


@dataclass(frozen=True, slots=True)
class Header:
    """The columns of a CSV, according to its first lines.

    Attributes:
        empty_end: the number of empty fields that rows usually have after the last column, for example
            because lines end with a delimiter.
        most_empty: the most such fields that a row may have.
    """

    names: tuple[str, ...]
    empty_end: int = 0
    most_empty: int = 0


def header_of(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Header:
    """Separate the columns from empty fields at the end of the header, the rows, or both.

    Args:
        names: the names, as `with_index` returns them.
        rows: the fields of the first rows. The first row that is not too short decides and, if all names are
            there, has no value after the last column: such a row is broken, and no later one is read.
    """
    count = len(names)
    while count > 1 and not names[count - 1].strip():
        count -= 1
    is_all = count == len(names)
    row = next((row for row in rows if len(row) >= count and not (is_all and any(row[count:]))), None)
    if not names[0].strip() or row is None or any(row[count:]):
        return Header(tuple(names))  # not empty fields at the end: the names or the rows are wrong
    end = len(row) - count
    return Header(tuple(names[:count]), end, max(len(names) - count, end))


def names_problem(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the problem with the names, and the remedy; None if there is none.

    Args:
        names: the names, as `with_index` returns them.
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
            remedy = "rename one of them; if the file has no header, put a line with names above its rows"
            return f"two columns are named {name!r} ({places[name] + 1} and {index + 1})", remedy
    return None
