"""Encodes columns: which values are missing, and which bin or category each value falls into. Pure."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
# The values of a feature, one per row: float64 with NaN for missing values, or objects (text) with None.
Column = npt.NDArray[Any]
Codes = npt.NDArray[np.int64]

# A column of numbers with at most this many distinct values holds classes.
_MOST_CLASSES = 20


def is_missing(column: Column) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows without a value: bool [rows]."""
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=np.bool_)
    return np.isnan(column)


def are_classes(label: Column) -> bool:
    """Return True if a label without missing values holds a few classes rather than amounts."""
    return label.dtype == object or len(np.unique(label)) <= _MOST_CLASSES


def categories(values: Column) -> Codes:
    """Return the category of each value as a number from 0; a missing text is a category, too."""
    if values.dtype == object:
        codes: dict[str | None, int] = {}
        return np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def binned(column: Column, *, bins: int) -> Codes:
    """Return the category of each text, or the bin of each number, as a number from 0.

    Bins hold about equally many rows, or one value each if there are no more values than bins: a rare one
    would otherwise share the bin of its neighbour. Missing values get a separate number.
    """
    if column.dtype == object:
        return categories(column)
    missing = np.isnan(column)
    values = np.where(missing, np.inf, column)
    ordered = np.sort(values)
    edges = _different(ordered)
    if len(edges) > bins:
        edges = _different(ordered[np.linspace(0, len(ordered) - 1, bins + 1).astype(np.intp)][:-1])
    return np.where(missing, len(edges) + 1, np.searchsorted(edges, values, side="right")).astype(np.int64)


def _different(ordered: Floats) -> Floats:
    found: Floats = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return found
