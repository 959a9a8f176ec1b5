"""Reads the records of TFRecord files: gzip in half the time of TensorFlow, and zstd, which it cannot read.

It reads in the calling thread only: with one process per core, TensorFlow's threads would only compete with
each other.
"""

import io
import itertools
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from slipway.components.errors import ComponentError

try:
    from isal import isal_zlib as inflation
except ModuleNotFoundError:  # a training's own interpreter need not have it; zlib takes twice as long
    import zlib as inflation  # type: ignore[no-redef]

_PIECE_BYTES = 1 << 20
# The most data to decompress at once: a piece of identical rows grows a thousandfold.
_INFLATED_BYTES = 4 << 20
_PLAIN_ROWS = 32  # TensorFlow returns all of them at once, and rows may have several megabytes each
_FIRST_BYTES = 64 << 10  # for the first few records, where the others would be decompressed for nothing
_MOST_RECORD_BYTES = 4 << 30  # more than a protocol buffer can have: it is no file of records
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # tells zlib to expect a gzip header
_LENGTH = struct.Struct("<Q")
# The length and the record are each followed by a checksum, which is skipped: gzip has its own of all bytes,
# and so has zstd as Ingest writes it.
# It stands at the end: the first records of a damaged file may be wrong, which whoever reads all notices.
_HEAD_BYTES, _FOOT_BYTES = 12, 4


def records(file: str, *, at_once_bytes: int | None = None) -> Iterator[list[bytes]]:
    """Yield the records of a file in order, in lists of arbitrary length.

    Args:
        file: the path of a file, local or on gs://; if its name ends in .gz or .zst, it is compressed.
        at_once_bytes: the most data to decompress at once; None: `_INFLATED_BYTES`.

    Raises:
        ComponentError: the file is damaged.
    """
    if not file.endswith((".gz", ".zst")):
        yield from _plain(file)
        return
    unpacked = _of_zstd if file.endswith(".zst") else _inflated
    # Joined only once a whole record is there: copying a long record with each piece would be quadratic.
    parts: list[bytes] = []
    there, needed = 0, _HEAD_BYTES
    try:
        with tf.io.gfile.GFile(file, "rb") as opened:
            for piece in unpacked(opened, at_once_bytes or _INFLATED_BYTES):
                parts.append(piece)
                there += len(piece)
                if there >= needed:
                    found, rest, needed = _split(b"".join(parts))
                    parts, there = [rest], len(rest)
                    yield found
    except (tf.errors.OpError, OSError, EOFError, inflation.error) as error:  # type: ignore[misc]
        raise _unreadable(file, str(error)) from error
    if there:
        raise _unreadable(file, "it ends within a record")


def in_pieces(lists: Iterable[list[bytes]], rows: int) -> Iterator[list[bytes]]:
    """Yield the same records in lists of `rows` records; only the last list may be shorter."""
    rest: list[bytes] = []
    for some in lists:
        rest += some
        whole = len(rest) - len(rest) % rows
        for first in range(0, whole, rows):
            yield rest[first : first + rows]
        del rest[:whole]
    if rest:
        yield rest


def first_records(file: str, rows: int) -> list[bytes]:
    """Return the first records of a file, at most `rows`."""
    lists = records(file, at_once_bytes=_FIRST_BYTES)
    return list(itertools.islice(itertools.chain.from_iterable(lists), rows))


def _plain(file: str) -> Iterator[list[bytes]]:
    """Yield the records of a file that is not compressed, by TensorFlow, which compares their checksums."""
    try:
        for batch in tf.data.TFRecordDataset(file, "", _PIECE_BYTES).batch(_PLAIN_ROWS).as_numpy_iterator():
            yield batch.tolist()
    except tf.errors.OpError as error:
        raise _unreadable(file, error.message.partition("\n")[0]) from error


def _of_zstd(file: Any, most_bytes: int) -> Iterator[bytes]:
    import pyarrow as pa  # a training's own interpreter need not have it, and reads gzip only

    stream = pa.CompressedInputStream(pa.PythonFile(_Raw(file), "r"), "zstd")
    while piece := stream.read(most_bytes):
        yield piece


class _Raw(io.RawIOBase):
    """A file of TensorFlow's, as Arrow takes it."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _inflated(file: Any, most_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed bytes of a gzip file piece by piece; the file may have several members."""
    gzip = None
    while piece := file.read(_PIECE_BYTES):
        more = True
        while piece or more:
            gzip = gzip or inflation.decompressobj(_GZIP_WINDOW)
            data = gzip.decompress(piece, most_bytes)
            yield data
            if gzip.eof:
                piece, gzip, more = gzip.unused_data, None, False
            else:  # with a full output buffer there may be more to come, even once all input is consumed
                piece, more = gzip.unconsumed_tail, len(data) == most_bytes
    if gzip:
        raise EOFError("it ends too early")


def _split(data: bytes) -> tuple[list[bytes], bytes, int]:
    """Return the complete records, the remaining bytes, and the length these need for another record."""
    found: list[bytes] = []
    begin, needed = 0, _HEAD_BYTES
    # Called for each of millions of rows: looked up once, these take a quarter less time.
    add, length_at, last = found.append, _LENGTH.unpack_from, len(data) - _HEAD_BYTES
    while begin <= last:
        body = begin + _HEAD_BYTES
        end = body + length_at(data, begin)[0]
        if end + _FOOT_BYTES > len(data):
            needed = end + _FOOT_BYTES - begin
            if needed > _MOST_RECORD_BYTES:
                raise EOFError(f"a record of {needed:,} bytes is none")
            break
        add(data[body:end])
        begin = end + _FOOT_BYTES
    return found, data[begin:], needed


def _unreadable(file: str, why: str) -> ComponentError:
    return ComponentError(f"{file} cannot be read: {why}", hint="run the node that wrote it again")
