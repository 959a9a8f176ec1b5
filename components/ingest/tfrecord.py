"""Reads TFRecord files, and writes records to shards.

Format of a record: its length as uint64, the length's masked crc32c, the record, its masked crc32c; little
endian.
"""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Any, BinaryIO, Protocol

import google_crc32c
import numpy as np
import zstandard
from isal import isal_zlib

from slipway.components.ingest.source_limits import TOO_LONG

_MASK_DELTA = 0xA282EAD8
_HEAD = struct.Struct("<QI")
_FOOT = struct.Struct("<I")
_PIECE_BYTES = 256 * 1024
_GZIP_WINDOW = 16 + zlib.MAX_WBITS  # tells zlib to write a gzip header


class Readable(Protocol):
    """A stream to read from."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""


OpenOutput = Callable[[str], BinaryIO]


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A record that cannot be read.

    Attributes:
        offset: the start of the record in the file, in bytes.
        data: the bytes that are there, or the first of them.
        is_end: whether no record after it can be found.
    """

    offset: int
    reason: str
    data: bytes
    is_end: bool


def masked_crc32c(data: bytes) -> int:
    """Return the checksum that TFRecord files use."""
    crc: int = google_crc32c.value(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def frame(records: Sequence[bytes]) -> bytes:
    """Return the records in the format of a file, one after the other."""
    crcs = np.fromiter(map(google_crc32c.value, records), dtype=np.uint32, count=len(records))
    masked = ((crcs >> np.uint32(15)) | (crcs << np.uint32(17))) + np.uint32(_MASK_DELTA)
    heads, feet = map(_head, map(len, records)), map(_FOOT.pack, masked.tolist())
    return b"".join(chain.from_iterable(zip(heads, records, feet, strict=True)))


def read_records(stream: Readable, *, max_bytes: int) -> Iterator[tuple[int, bytes] | BrokenRecord]:
    """Yield the records of a file with their offsets, and a BrokenRecord for each broken one.

    Args:
        stream: the uncompressed content of the file.
        max_bytes: a record above this size is yielded as a BrokenRecord that holds only its first bytes.
    """
    offset = 0
    while head := _read(stream, _HEAD.size):
        if len(head) < _HEAD.size:
            yield BrokenRecord(offset, "the file ends within a record", head, is_end=True)
            return
        size, crc = _HEAD.unpack(head)
        if masked_crc32c(head[:8]) != crc:
            yield BrokenRecord(offset, "no record begins here", head, is_end=True)
            return
        if size > max_bytes:
            begin, missing_bytes = _skip(stream, size + _FOOT.size)
            reason = "the file ends within a record" if missing_bytes else TOO_LONG
            yield BrokenRecord(offset, reason, begin, is_end=missing_bytes > 0)
            offset += _HEAD.size + size + _FOOT.size
            continue
        body = _read(stream, size + _FOOT.size)
        if len(body) < size + _FOOT.size:
            yield BrokenRecord(offset, "the file ends within a record", body, is_end=True)
            return
        record = body[:size]
        if masked_crc32c(record) != _FOOT.unpack(body[size:])[0]:
            yield BrokenRecord(offset, "broken checksum", record, is_end=False)
        else:
            yield offset, record
        offset += _HEAD.size + len(body)


@dataclass(frozen=True, slots=True)
class Shard:
    """A file that was written: its name, its number of records and its size."""

    name: str
    rows: int
    size_bytes: int


class ShardWriter:
    """Writes records to shards in the order given; the same records give the same bytes.

    Records go to `lanes` files in turn; when a file has reached `target_bytes`, another one follows.

    Args:
        prefix: path of the files, without the number and the suffix.
        lanes: number of files to fill in turn, >= 1; each file exists even if it stays empty.
        target_bytes: size of a file on disk, > 0; exceeded by at most one block.
        compression: "gzip", "zstd" or "none".
        gzip_level: 1 (fast) to 9 (small).
    """

    def __init__(
        self,
        prefix: str,
        *,
        open_output: OpenOutput,
        lanes: int = 1,
        target_bytes: int = 100 << 20,
        compression: str = "gzip",
        gzip_level: int = 1,
    ) -> None:
        self._dealt = 0
        self._lanes = [
            _Lane(
                f"{prefix}-{lane:04d}", target_bytes, partial(_CODECS[compression], gzip_level), open_output
            )
            for lane in range(lanes)
        ]

    def write(self, records: Sequence[bytes]) -> None:
        """Write records.

        Raises:
            OSError: a file could not be written.
        """
        lanes = len(self._lanes)
        for lane in range(lanes):
            if dealt := records[(lane - self._dealt) % lanes :: lanes]:
                self._lanes[lane].write(dealt)
        self._dealt += len(records)

    def close(self) -> list[Shard]:
        """Finish the files and return them in order.

        Raises:
            OSError: a file could not be written.
        """
        return [shard for lane in self._lanes for shard in lane.close()]

    def abandon(self) -> None:
        """Close the files after an error; they are incomplete."""
        for lane in self._lanes:
            lane.abandon()


class _Lane:
    """A sequence of files that are filled one after the other."""

    def __init__(
        self, prefix: str, target_bytes: int, codec: Callable[[], "_Codec"], open_output: OpenOutput
    ) -> None:
        self._prefix = prefix
        self._target_bytes = target_bytes
        self._codec = codec
        self._open_output = open_output
        self._shards: list[Shard] = []
        self._open()

    def write(self, records: Sequence[bytes]) -> None:
        if self._size >= self._target_bytes:
            self._finish()
            self._open()
        data = frame(records)
        self._rows += len(records)
        self._put(self._compressor.compress(data) if self._compressor else data)

    def close(self) -> list[Shard]:
        self._finish()
        return self._shards

    def abandon(self) -> None:
        self._file.close()

    def _open(self) -> None:
        suffix, self._compressor = self._codec()
        self._name = f"{self._prefix}-{len(self._shards):04d}{suffix}"
        self._file = self._open_output(self._name)
        self._rows = self._size = 0

    def _finish(self) -> None:
        if self._compressor:
            self._put(self._compressor.flush())
        self._file.close()
        self._shards.append(Shard(self._name, self._rows, self._size))

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._size += len(data)


# A file's suffix, from which readers know the codec, and a compressor. Equal input gives equal bytes, since
# the streams contain no timestamp. At level 1, ISA-L is four times as fast as zlib, for the same size.
_Codec = tuple[str, Any]
_CODECS: Mapping[str, Callable[[int], _Codec]] = {
    "none": lambda _: ("", None),
    "gzip": lambda level: (
        ".gz",
        (isal_zlib if level == 1 else zlib).compressobj(level, zlib.DEFLATED, _GZIP_WINDOW),
    ),
    # As in gzip, a checksum of all bytes: readers that trust it skip those of the records.
    "zstd": lambda _: (".zst", zstandard.ZstdCompressor(write_checksum=True).compressobj()),
}


@lru_cache(maxsize=1 << 16)
def _head(size: int) -> bytes:
    return _HEAD.pack(size, masked_crc32c(struct.pack("<Q", size)))


def _skip(stream: Readable, size: int) -> tuple[bytes, int]:
    """Skip some bytes; return the first of them, and how many are missing."""
    begin = b""
    while size and (data := stream.read(min(size, _PIECE_BYTES))):
        begin = begin or data
        size -= len(data)
    return begin, size


def _read(stream: Readable, size: int) -> bytes:
    """Read `size` bytes, or fewer at the end of the file; some streams return less at a time."""
    data = stream.read(size)
    while len(data) < size and (more := stream.read(size - len(data))):
        data += more
    return data
