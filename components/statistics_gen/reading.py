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
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # zlib's way to ask for gzip's frame
_LENGTH = struct.Struct("<Q")
# Behind the length is its checksum, behind the record the record's. gzip has one of its own of all bytes.
_HEAD_BYTES, _FOOT_BYTES = 12, 4


def batches(file: str, sample: float | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a compressed file of examples, in its order; each column is a list of values per row.

    Args:
        file: its path, local or on gs://.
        sample: the share of rows wanted, 0 to 1; the same rows each time. None: all.

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
        records += wanted
        size += sum(map(len, wanted))
        if len(records) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield decoder.DecodeBatch(records)
            records, size = [], 0
    if records:
        yield decoder.DecodeBatch(records)


def _records(file: str) -> Iterator[list[bytes]]:
    """The records of a file, many at a time."""
    data = b""
    try:
        with fileio.open(file, "rb") as opened:
            for piece in _inflated(opened):
                records, data = _split(data + piece)
                yield records
    except (tf.errors.OpError, OSError, EOFError, isal_zlib.error) as error:  # type: ignore[misc]
        raise _unreadable(file, str(error)) from error
    if data:
        raise _unreadable(file, "it ends within a record")


def _inflated(file: Any) -> Iterator[bytes]:
    """The bytes of a gzip file; it may consist of several."""
    gzip = None
    while piece := file.read(_PIECE_BYTES):
        while piece:
            gzip = gzip or isal_zlib.decompressobj(_GZIP_WINDOW)
            yield gzip.decompress(piece)
            piece = gzip.unused_data
            if gzip.eof:
                gzip = None
    if gzip:
        raise EOFError("it ends too early")


def _split(data: bytes) -> tuple[list[bytes], bytes]:
    """The records that are there as a whole, and the rest."""
    records = []
    begin = 0
    while begin + _HEAD_BYTES <= len(data):
        body = begin + _HEAD_BYTES
        end = body + _LENGTH.unpack_from(data, begin)[0]
        if end + _FOOT_BYTES > len(data):
            break
        records.append(data[body:end])
        begin = end + _FOOT_BYTES
    return records, data[begin:]


def _unreadable(file: str, why: str) -> ComponentError:
    return ComponentError(f"{file} cannot be read: {why}", hint="run Ingest again")
