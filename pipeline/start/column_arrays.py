"""Joins a column's Arrow arrays, one for each block, into NumPy's; of lists, into one array for each row."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.pipeline.start.facts import EXACT


def joined(chunks: Sequence[pa.Array]) -> pa.Array:
    """Return the values of all blocks: lists only if a row has several values, in whichever block."""
    lists = (each for each in chunks if is_list(each))
    if any((pc.max(pc.list_value_length(each)).as_py() or 0) > 1 for each in lists):
        chunks = [each if is_list(each) else _as_lists(each) for each in chunks]
    else:
        chunks = [_as_single(each) if is_list(each) else each for each in chunks]
    return pa.chunked_array(chunks).combine_chunks()


def _as_lists(values: pa.Array) -> pa.Array:
    """Return each value as a list of one; a missing one as an empty list."""
    ends = np.cumsum([0, *pc.is_valid(values).to_numpy(zero_copy_only=False)])
    return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), values.drop_null())


def _as_single(lists: pa.Array) -> pa.Array:
    """Return the value of each list of one; nothing for an empty one."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    places = pa.array(np.cumsum(counts) - 1, pa.int64(), mask=counts == 0)
    return pc.list_flatten(lists).take(places)


def list_arrays(lists: pa.Array) -> list[npt.NDArray[Any]]:
    """Return the values of each list, as `value_array` returns those of a column."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return np.split(value_array(pc.list_flatten(lists)), np.cumsum(counts)[:-1])


def is_list(values: pa.Array) -> bool:
    """Return True for a column of lists."""
    return bool(pa.types.is_large_list(values.type))


def value_array(column: pa.Array) -> npt.NDArray[Any]:
    """Return numbers as float64 with NaN, and texts as objects with None, for a missing value."""
    if pa.types.is_large_binary(column.type):
        texts = [None if text is None else text.decode("utf-8", "replace") for text in column.to_pylist()]
        return np.array(texts, dtype=object)
    return np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")), dtype=np.float64)


def rows_without_text(values: pa.Array) -> int:
    """Return the number of rows with bytes that are not UTF-8; 0 for a column of numbers."""
    if _is_readable(values):
        return 0
    return sum(not _is_readable(values[row : row + 1]) for row in range(len(values)))


def _is_readable(values: pa.Array) -> bool:
    """Return True if all values are numbers or valid UTF-8."""
    if is_list(values):
        return _is_readable(pc.list_flatten(values))
    if not pa.types.is_large_binary(values.type):
        return True
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def are_merged(values: pa.Array) -> bool:
    """Return True if different integers, such as IDs, become equal as float64, as which `new` counts them."""
    if not pa.types.is_integer(values.type) or not len(values):
        return False
    limits = pc.min_max(values)
    if not limits["min"].is_valid or max(-limits["min"].as_py(), limits["max"].as_py()) <= EXACT:
        return False
    there = values.drop_null()
    found, left = (pc.count_distinct(each).as_py() for each in (there, there.cast(pa.float64(), safe=False)))
    return bool(left < found)
