"""Reads the examples of TFRecord files as rows that can be compared, without TensorFlow."""

import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FLOAT_TOLERANCE = 1e-5
"""Relative and absolute tolerance of a float in an example, which depends on Beam's order of addition."""

_RECORD_HEAD = struct.Struct("<Q")
_RECORD_EXTRA = 4  # bytes of each checksum
_MOST_BYTES = 2**31 - 1  # the largest message of Protocol Buffers
_FIELD_1, _FIELD_2, _FIELD_3 = (number << 3 | 2 for number in (1, 2, 3))  # with the wire type LEN


def records_of(file: Path) -> Iterator[bytes]:
    """Yield the records of a TFRecord file, gzip-compressed or not; checksums are not verified.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has another format, or ends inside a record.
    """
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            while head := stream.read(_RECORD_HEAD.size):
                size = _RECORD_HEAD.unpack(head)[0]
                stream.read(_RECORD_EXTRA)
                # In a file of another format, the size can be any number: limit what is read.
                record = stream.read(min(size, _MOST_BYTES))
                if len(record) != size:
                    raise ValueError(f"{file.name} is not a TFRecord file")
                yield record
                stream.read(_RECORD_EXTRA)
    except (struct.error, zlib.error, EOFError) as error:
        raise ValueError(f"{file.name} is not a TFRecord file") from error


@dataclass(frozen=True, order=True)
class Row:
    """An example: the part that must agree exactly, and the floats, which need not."""

    exact: bytes
    floats: tuple[float, ...]

    def is_near(self, other: "Row") -> bool:
        """Return True if it is the same example, apart from rounding."""
        return (
            self.exact == other.exact
            and len(self.floats) == len(other.floats)
            and all(
                math.isclose(ours, theirs, rel_tol=FLOAT_TOLERANCE, abs_tol=FLOAT_TOLERANCE)
                or (math.isnan(ours) and math.isnan(theirs))
                for ours, theirs in zip(self.floats, other.floats, strict=True)
            )
        )


def row_of(record: bytes) -> Row:
    """Parse a serialized tf.train.Example, whose features protobuf stores in any order.

    A record that is not such a message must agree exactly.

    Source: "Encoding", documentation of Protocol Buffers; tensorflow/core/example/feature.proto.
    """
    try:
        features = sorted(
            (dict(_fields(entry)) for _, features in _fields(record) for _, entry in _fields(features)),
            key=lambda entry: entry[_FIELD_1],
        )
        exact: list[bytes] = []
        floats: list[float] = []
        for entry in features:
            [(kind, values)] = _fields(entry.get(_FIELD_2, b"")) or [(0, b"")]
            exact += [entry[_FIELD_1], b"%d" % kind]
            if kind == _FIELD_2:
                packed = b"".join(data for _, data in _fields(values))
                floats += struct.unpack(f"<{len(packed) // 4}f", packed)
                exact.append(b"%d" % len(packed))
            else:
                exact.append(values)
    except (ValueError, IndexError, KeyError, struct.error):
        return Row(record, ())
    return Row(b"\0".join(exact), tuple(floats))


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    """Return the tag and the content of each field; all must have the wire type LEN."""
    found = []
    at = 0
    while at < len(data):
        tag = data[at]
        if tag not in (_FIELD_1, _FIELD_2, _FIELD_3):
            raise ValueError(f"tag {tag}")
        length = shift = 0
        while True:
            at += 1
            length |= (data[at] & 0x7F) << shift
            shift += 7
            if not data[at] & 0x80:
                break
        at += 1
        if at + length > len(data):
            raise ValueError("cut off")
        found.append((tag, data[at : at + length]))
        at += length
    return found
