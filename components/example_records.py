"""Reads the records of compressed files of examples, in half of the time that TensorFlow takes.

In this thread alone, too: with as many processes as there are cores, TensorFlow's own threads only take their
time from each other.
"""

import itertools
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf
from isal import isal_zlib
from tfx.dsl.io import fileio

from slipway.components.errors import ComponentError

_PIECE_BYTES = 1 << 20
# Of unpacked data at once; a piece of equal rows is a thousand times as large unpacked.
_INFLATED_BYTES = 4 << 20
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # zlib's way to ask for gzip's frame
_LENGTH = struct.Struct("<Q")
# Behind the length is its checksum, behind the record the record's. gzip has one of its own of all bytes.
_HEAD_BYTES, _FOOT_BYTES = 12, 4


def records(file: str) -> Iterator[list[bytes]]:
    """The records of a file, in its order: as many at a time as there happen to be.

    Args:
        file: compressed with gzip; its path, local or on gs://.

    Raises:
        ComponentError: the file is damaged.
    """
    # Joined once there is a whole record: copied with each piece, a long one would take time by its square.
    parts: list[bytes] = []
    there, needed = 0, _HEAD_BYTES
    try:
        with fileio.open(file, "rb") as opened:
            for piece in _inflated(opened):
                parts.append(piece)
                there += len(piece)
                if there >= needed:
                    found, rest, needed = _split(b"".join(parts))
                    parts, there = [rest], len(rest)
                    yield found
    except (tf.errors.OpError, OSError, EOFError, isal_zlib.error) as error:  # type: ignore[misc]
        raise _unreadable(file, str(error)) from error
    if there:
        raise _unreadable(file, "it ends within a record")


def in_pieces(lists: Iterable[list[bytes]], rows: int) -> Iterator[list[bytes]]:
    """The same records, so many at a time; fewer only at the end."""
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
    """The first records of a file, at most so many."""
    return list(itertools.islice(itertools.chain.from_iterable(records(file)), rows))


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
    found = []
    begin, needed = 0, _HEAD_BYTES
    while begin + _HEAD_BYTES <= len(data):
        body = begin + _HEAD_BYTES
        end = body + _LENGTH.unpack_from(data, begin)[0]
        if end + _FOOT_BYTES > len(data):
            needed = end + _FOOT_BYTES - begin
            break
        found.append(data[body:end])
        begin = end + _FOOT_BYTES
    return found, data[begin:], needed


def _unreadable(file: str, why: str) -> ComponentError:
    return ComponentError(f"{file} cannot be read: {why}", hint="run Ingest again")
