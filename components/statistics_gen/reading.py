"""Reads files of examples into large batches of columns."""

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf
from isal import isal_zlib
from tfx.dsl.io import fileio
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

from slipway.components.errors import ComponentError

BATCH_ROWS = 32_768
"""Rows of a batch at most."""

BATCH_BYTES = 64 << 20
"""Of the examples of a batch: each costs a generator some tenths of a millisecond a column."""

_PIECE_BYTES = 1 << 20
# Of unpacked data at once; a piece of equal rows is a thousand times as large unpacked.
_INFLATED_BYTES = 4 << 20
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # zlib's way to ask for gzip's frame
_LENGTH = struct.Struct("<Q")
# Behind the length is its checksum, behind the record the record's. gzip has one of its own of all bytes.
_HEAD_BYTES, _FOOT_BYTES = 12, 4


def batches(file: str, sample: float | None = None, *, parts: int = 1) -> Iterator[pa.RecordBatch]:
    """The rows of a compressed file of examples, in its order; each column is a list of values per row.

    Args:
        file: its path, local or on gs://.
        sample: the share of rows wanted, 0 to 1; the same rows each time. None: all.
        parts: a batch is so many times smaller than usual.

    Raises:
        ComponentError: the file is damaged.
    """
    decoder = ExamplesToRecordBatchDecoder()
    chance = np.random.default_rng(zlib.crc32(file.rpartition("/")[2].encode()))
    records: list[bytes] = []
    size = 0
    for some in _records(file):
        wanted = some
        if sample is not None:
            wanted = [some[place] for place in np.flatnonzero(chance.random(len(some)) < sample)]
        for record in wanted:
            records.append(record)
            size += len(record)
            if len(records) >= BATCH_ROWS // parts or size >= BATCH_BYTES // parts:
                yield decoder.DecodeBatch(records)
                records, size = [], 0
    if records:
        yield decoder.DecodeBatch(records)


def _records(file: str) -> Iterator[list[bytes]]:
    """The records of a file, many at a time."""
    # Joined once there is a whole record: copied with each piece, a long one would take time by its square.
    parts: list[bytes] = []
    there, needed = 0, _HEAD_BYTES
    try:
        with fileio.open(file, "rb") as opened:
            for piece in _inflated(opened):
                parts.append(piece)
                there += len(piece)
                if there >= needed:
                    records, rest, needed = _split(b"".join(parts))
                    parts, there = [rest], len(rest)
                    yield records
    except (tf.errors.OpError, OSError, EOFError, isal_zlib.error) as error:  # type: ignore[misc]
        raise _unreadable(file, str(error)) from error
    if there:
        raise _unreadable(file, "it ends within a record")


def _inflated(file: Any) -> Iterator[bytes]:
    """The bytes of a gzip file, some at a time; it may consist of several."""
    gzip = None
    while piece := file.read(_PIECE_BYTES):
        more = True
        while piece or more:
            gzip = gzip or isal_zlib.decompressobj(_GZIP_WINDOW)
            data = gzip.decompress(piece, _INFLATED_BYTES)
            yield data
            if gzip.eof:
                piece, gzip, more = gzip.unused_data, None, False
            else:  # as much as was asked for: there may be more, even of input that is all taken in
                piece, more = gzip.unconsumed_tail, len(data) == _INFLATED_BYTES
    if gzip:
        raise EOFError("it ends too early")


def _split(data: bytes) -> tuple[list[bytes], bytes, int]:
    """The records that are there as a whole, the rest, and how long it must become for another record."""
    records = []
    begin, needed = 0, _HEAD_BYTES
    while begin + _HEAD_BYTES <= len(data):
        body = begin + _HEAD_BYTES
        end = body + _LENGTH.unpack_from(data, begin)[0]
        if end + _FOOT_BYTES > len(data):
            needed = end + _FOOT_BYTES - begin
            break
        records.append(data[body:end])
        begin = end + _FOOT_BYTES
    return records, data[begin:], needed


def _unreadable(file: str, why: str) -> ComponentError:
    return ComponentError(f"{file} cannot be read: {why}", hint="run Ingest again")
