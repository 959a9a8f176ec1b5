"""Reads the examples of TFRecord files as rows that can be compared, without TensorFlow."""

import gzip
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slipway.components.ingest.example_message import parse_example
from slipway.components.ingest.tfrecord import BrokenRecord, read_records

FLOAT_TOLERANCE = 1e-5
"""Relative and absolute tolerance of a float in an example, which depends on Beam's order of addition."""

_MOST_BYTES = 2**31 - 1  # the largest message of Protocol Buffers


def records_of(file: Path) -> Iterator[bytes]:
    """Yield the records of a TFRecord file, gzip-compressed or not.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has another format, or is damaged.
    """
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            yield from map(_whole, read_records(stream, max_bytes=_MOST_BYTES))
    except (zlib.error, EOFError) as error:
        raise ValueError(f"{file.name} is not a TFRecord file") from error


def _whole(item: tuple[int, bytes] | BrokenRecord) -> bytes:
    match item:
        case (_, record):
            return record
    raise EOFError(item.reason)


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
    """
    example = parse_example(record)
    if example is None:
        return Row(record, ())
    exact: list[object] = []
    floats: list[float] = []
    for name, feature in sorted(example.features.feature.items()):
        kind = feature.WhichOneof("kind")
        values = getattr(feature, kind).value if kind else ()
        if kind == "float_list":
            floats += values
        exact += [name, kind, len(values) if kind == "float_list" else list(values)]
    return Row(repr(exact).encode(), tuple(floats))
