"""Detects notations in a column of numbers that suggest that they are not numbers.

A usual number is an optional minus, digits, a point, and an exponent with a sign. TFX reads other notations
as numbers too, but they may be phone numbers, codes, versions or days.
"""

from collections.abc import Iterator
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.string_buffers import any_with_zero_before, offsets, utf8_bytes

_MOST_DECIMALS = 8
_SPACES = b" \t\r\n\v\f"


class Form(StrEnum):
    """Unusual notations of numbers; each value is worded to follow "5 values" in a message."""

    PLUS = "with + in front"
    ZEROS = "with zeros in front"
    UNDERSCORE = "with _ inside"
    SPACES = "with spaces around"
    EXPONENT = "with an exponent, but neither point nor sign"
    TRAILING = "with a zero at the end, beside shorter ones"


# The letters that a form needs somewhere in a column, so that few columns are searched cell by cell, and the
# pattern of a cell.
_PATTERNS = {
    Form.PLUS: (b"+", r"^\s*\+"),
    Form.UNDERSCORE: (b"_", "_"),
    Form.SPACES: (_SPACES, r"^\s|\s$"),
    Form.EXPONENT: (b"eE", r"^\s*[0-9]+[eE][0-9]+\s*$"),
}
_OF_PLAIN = (Form.EXPONENT,)


def odd_forms(cells: pa.Array, kind: ColumnType, *, is_plain: bool) -> Iterator[tuple[Form, int, str]]:
    """Yield each odd form among the texts of a column, with its number of cells and the first of them.

    Args:
        cells: Arrow strings; each is a number or empty.
        kind: the type that the cells are read as, INT or FLOAT.
        is_plain: whether `parse_plain` accepts them, so that most forms cannot occur.
    """
    if is_plain and kind == ColumnType.INT:
        return
    places = offsets(cells)
    there = utf8_bytes(cells)[places[0] : places[-1]].tobytes()
    for form, (marks, pattern) in _PATTERNS.items():
        if form in (_OF_PLAIN if is_plain else _PATTERNS) and any(mark in there for mark in marks):
            yield from _matching(form, cells, pattern)
    if kind == ColumnType.FLOAT:
        if not is_plain and any_with_zero_before(b"0123456789", cells):
            yield from _matching(Form.ZEROS, cells, r"^\s*[+-]?0[0-9_]")
        yield from _trailing_zeros(cells)


def _matching(form: Form, cells: pa.Array, pattern: str) -> Iterator[tuple[Form, int, str]]:
    found = cells.filter(pc.match_substring_regex(cells, pattern))
    if len(found):
        yield form, len(found), found[0].as_py()


def _trailing_zeros(cells: pa.Array) -> Iterator[tuple[Form, int, str]]:
    """Find decimals that end in a zero, if there are also shorter ones, such as 1.10 beside 1.2."""
    there, places = utf8_bytes(cells), offsets(cells)
    starts, ends = places[:-1], places[1:]
    filled = ends > starts
    starts, ends = starts[filled], ends[filled]
    zeros = there[ends - 1] == ord("0")
    rows = np.flatnonzero(filled)
    ends_in_zero = rows[zeros]
    for decimals in range(2, _MOST_DECIMALS + 1):
        has = _has_decimals(there, starts[zeros], ends[zeros], decimals)
        if has.any() and any(_has_decimals(there, starts, ends, fewer).any() for fewer in range(1, decimals)):
            some = cells.take(pa.array(ends_in_zero[has]))
            yield from _matching(Form.TRAILING, some, r"\.[0-9]+0$")


def _has_decimals(
    there: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], decimals: int
) -> npt.NDArray[np.bool_]:
    """Return a mask of the texts whose point is followed by exactly this many digits."""
    point = ends - 1 - decimals
    return np.asarray((point >= starts) & (there[np.maximum(point, 0)] == ord(".")))
