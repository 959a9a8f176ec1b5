"""Accesses the bytes of a string column in Arrow's memory without copying them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Utf8Bytes = npt.NDArray[np.uint8]


def offsets(cells: pa.Array) -> npt.NDArray[Any]:
    """Return the offset of each string in `utf8_bytes`, and the end of the last one; [len(cells) + 1]."""
    width = np.int32 if cells.type in (pa.string(), pa.binary()) else np.int64
    if not len(cells):
        return np.zeros(1, dtype=width)
    return np.frombuffer(cells.buffers()[1], dtype=width)[cells.offset : cells.offset + len(cells) + 1]


def utf8_bytes(cells: pa.Array) -> Utf8Bytes:
    """Return a buffer that holds the UTF-8 bytes of all strings; it may hold other bytes before and after."""
    data = cells.buffers()[2]
    return np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)


def any_with_zero_before(wanted: bytes, cells: pa.Array) -> bool:
    """Return True if any string begins, after an optional sign, with a zero and one of the wanted bytes."""
    there, places = utf8_bytes(cells), offsets(cells)
    long = np.diff(places) > 1
    if not len(there) or not long.any():
        return False
    first, last = places[:-1][long], places[1:][long] - 1
    signs = there[first]
    first = first + ((signs == ord("-")) | (signs == ord("+")))
    zeros = first[(there[first] == ord("0")) & (first < last)]
    is_wanted = np.zeros(256, dtype=np.bool_)
    is_wanted[list(wanted)] = True
    return bool(is_wanted[there[zeros + 1]].any())
