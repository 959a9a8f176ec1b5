"""Encodes columns as classes: which values are missing, which bin or category each falls into. Pure."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
# The values of a feature, one a row: float64 with NaN, or objects (text) with None, where there is none.
Column = npt.NDArray[Any]
Codes = npt.NDArray[np.int64]

# A column of numbers with at most this many different ones holds classes.
_MOST_CLASSES = 20


def is_missing(column: Column) -> npt.NDArray[np.bool_]:
    """Which rows have no value: bool [rows]."""
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=np.bool_)
    return np.isnan(column)


def are_classes(label: Column) -> bool:
    """Whether a label without missing values is one of a few classes rather than an amount."""
    return label.dtype == object or len(np.unique(label)) <= _MOST_CLASSES


def categories(values: Column) -> Codes:
    """Number the distinct values from 0; a missing text counts as a value."""
    if values.dtype == object:
        codes: dict[str | None, int] = {}
        return np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def binned(column: Column, *, bins: int) -> Codes:
    """Number the texts, or bins of about equal size; missing values get their own number."""
    if column.dtype == object:
        return categories(column)
    missing = np.isnan(column)
    values = np.where(missing, np.inf, column)
    ordered = np.sort(values)
    edges = ordered[np.linspace(0, len(ordered) - 1, bins + 1).astype(np.intp)][:-1]
    edges = edges[np.append(True, edges[1:] != edges[:-1])]
    return np.where(missing, len(edges) + 1, np.searchsorted(edges, values, side="right")).astype(np.int64)
