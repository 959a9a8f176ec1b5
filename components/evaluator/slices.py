"""Assigns the rows of a batch to slices, by the values of columns and by crosses of columns. Pure.

As in TensorFlow Model Analysis, a row without a value of the column is in none of its slices, and a row with
several values is in the slice of each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError

MOST_SLICES = 10_000
"""The most slices of one evaluation. A column with more values identifies rows rather than groups them."""

Value = str | int | float
SliceKey = tuple[tuple[str, Value], ...]
"""Columns with their values, sorted by column; () is the slice of all rows."""
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a column in a batch; a row has each of its values once.

    Attributes:
        rows: int64 [entries], the row of each entry, ascending.
        codes: int64 [entries], index of the entry's value in `values`.
        values: the distinct values.
    """

    rows: Ints
    codes: Ints
    values: Sequence[Value]


@dataclass(frozen=True, slots=True)
class Members:
    """Rows and the slices that contain them.

    Attributes:
        rows: int64 [memberships].
        slices: int64 [memberships], indices in `keys`.
    """

    rows: Ints
    slices: Ints
    keys: Sequence[SliceKey]


def column_of(name: str, rows: Ints, codes: Ints, values: Sequence[Any]) -> Column:
    """Build a column from values as read.

    Args:
        name: of the column, for the error message.
        rows: the row of each value, ascending.
        codes: the index of each in `values`.
        values: bytes, text, or numbers.

    Raises:
        ComponentError: text is not UTF-8, so it cannot name a slice.
    """
    many = max(len(values), 1)
    if rows.size > 1 and (rows[1:] == rows[:-1]).any():
        pairs = np.unique(rows * many + codes)
        rows, codes = pairs // many, pairs % many
    return Column(rows, codes, [_named(name, value) for value in values])


def members(spec: Sequence[str], columns: Mapping[str, Column], rows: int) -> Members:
    """Return the slices by the columns of a spec.

    Args:
        spec: names of columns, sorted; empty: all rows are one slice.
        columns: the columns of the batch; if one of `spec` is missing, there is no slice.
        rows: number of rows in the batch.
    """
    found, codes = np.arange(rows), np.zeros(rows, np.int64)
    many = 1
    for name in spec:
        if name not in columns:
            return Members(np.zeros(0, np.int64), np.zeros(0, np.int64), [])
        column = columns[name]
        counts = np.bincount(column.rows, minlength=rows)
        starts = np.cumsum(counts) - counts
        repeats = counts[found]
        before = np.repeat(np.arange(found.size), repeats)
        within = np.arange(before.size) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        entries = starts[found[before]] + within
        codes = codes[before] * len(column.values) + column.codes[entries]
        found = found[before]
        many *= len(column.values)
    different, slices = np.unique(codes, return_inverse=True)
    return Members(found, slices.astype(np.int64), [_key(int(code), spec, columns) for code in different])


def check_number(keys: Sequence[SliceKey]) -> None:
    """Check that there are not more slices than are useful.

    Raises:
        ComponentError: there are; the message names the columns that make most of them.
    """
    if len(keys) <= MOST_SLICES:
        return
    by_columns: dict[tuple[str, ...], int] = {}
    for key in keys:
        columns = tuple(column for column, _ in key)
        by_columns[columns] = by_columns.get(columns, 0) + 1
    columns, number = max(by_columns.items(), key=lambda item: item[1])
    raise ComponentError(
        f"evaluate.slices: the values of {' with '.join(columns)} make more than {MOST_SLICES:,} slices "
        f"({number:,} so far), the most an evaluation may have",
        hint="slice by a column with fewer values, such as ranges of them, under another name than the raw "
        "column's; without a limit, and row by row: beam.stock_nodes: [Evaluator]",
    )


def _key(code: int, spec: Sequence[str], columns: Mapping[str, Column]) -> SliceKey:
    parts = []
    for name in reversed(spec):
        code, value = divmod(code, len(columns[name].values))
        parts.append((name, columns[name].values[value]))
    return tuple(reversed(parts))


def _named(name: str, value: Any) -> Value:
    if isinstance(value, bytes):
        return _text(name, value)
    # -0.0 and 0.0 are one value.
    found: Value = value + 0.0 if isinstance(value, float) else value
    return found


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ComponentError(
            f"evaluate.slices: {name} holds {value!r}, which is not UTF-8, so no slice can be named after it",
            hint="slice by another column, or write the text as UTF-8",
        ) from error
