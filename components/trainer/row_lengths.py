"""Measures the lists of rows that are padded to one length, and finds the bucket of each row. Pure."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.trainer.buckets import Buckets

LOOKED_AT_TOGETHER_ROWS = 4096


def buckets_of(columns: Mapping[str, npt.NDArray[Any]], buckets: Buckets) -> npt.NDArray[np.int64]:
    """Return the bucket of each row: the first in which no column loses a value other than 0.

    Args:
        columns: at least the bucketed ones, [rows, length, ...], padded with 0 at the end.
    """
    rows = len(columns[next(iter(buckets.lengths))])
    found = np.zeros(rows, np.int64)
    for name, lengths in buckets.lengths.items():
        for first in range(0, rows, LOOKED_AT_TOGETHER_ROWS):
            part = slice(first, first + LOOKED_AT_TOGETHER_ROWS)
            bucket = np.searchsorted(lengths, lengths_of(columns[name][part]))
            found[part] = np.maximum(found[part], bucket)
    return found


def lengths_of(column: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the place of each row's last value that is not 0, counted from 1; 0 if all are.

    Args:
        column: [rows, length, ...].
    """
    rows, length = column.shape[:2]
    is_value = (column.reshape(rows, length, -1) != 0).any(-1)
    return np.where(is_value.any(1), length - is_value[:, ::-1].argmax(1), 0)
