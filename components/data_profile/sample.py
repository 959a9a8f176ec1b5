"""Reads a sample of the examples as columns, for rules that need more than statistics."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import tensorflow as tf
from tfx.dsl.io import fileio

from slipway.components import example_records
from slipway.components.data_profile.columns import Column
from slipway.components.data_profile.rows import spread
from slipway.components.even_sample import within
from slipway.components.example_batches import ExampleDecoder

MOST_BYTES = 256 << 20
"""The limit for the size of a sample's records; without it, a few thousand images would take gigabytes."""
_AT_ONCE_BYTES = 256 << 10  # where only the first rows of a file are read
# Examples of this size, as stored, are read whole, in a second or two. Of more, Ingest makes so many files,
# one after the other, that the first rows of each are spread over the data, too.
_READ_WHOLE_BYTES = 64 << 20
_FIRST_ROWS = 32

# Text longer than this on average is a document or an image, useless as a category.
_LONG_BYTES = 1_000
# Each of these rows is shown together with the row that it repeats.
_SHOWN_REPEATED = 2


@dataclass(frozen=True)
class Sample:
    """Rows from all splits.

    Attributes:
        columns: the columns with at most one value per row, by name; see `columns.Column`.
        repeated: the number of rows that repeat an earlier one.
        first_repeated: the numbers of the first few such rows.
        records: the same rows as they were read, serialized tf.Examples.
    """

    columns: dict[str, Column]
    rows: int
    repeated: int
    first_repeated: Sequence[int]
    records: Sequence[bytes]


def read_sample(uri: str, splits: Sequence[str], *, rows: int) -> Sample:
    """Read examples evenly from every file of every split, spread over it unless there is much to read.

    Args:
        rows: the number of rows, rounded up to equally many per file; fewer if they would take more than
            MOST_BYTES.
    """
    files = [path for split in splits for path in sorted(fileio.glob(f"{uri}/Split-{split}/*"))]
    read = _spread if sum(map(_size_bytes, files)) <= _READ_WHOLE_BYTES else _first
    records = [
        record for path in files for record in read(path, -(-rows // len(files)), MOST_BYTES // len(files))
    ]
    digests = [hashlib.blake2b(record, digest_size=16).digest() for record in records]
    first = {digest: row for row, digest in reversed(list(enumerate(digests)))}
    repeats = [row for row, digest in enumerate(digests) if first[digest] != row]
    columns = _columns(ExampleDecoder().decode(records)) if records else {}
    return Sample(
        columns=columns,
        rows=len(records),
        repeated=len(repeats),
        first_repeated=repeats[:_SHOWN_REPEATED],
        records=records,
    )


def _size_bytes(path: str) -> int:
    return int(tf.io.gfile.stat(path).length)


def _spread(path: str, rows: int, most_bytes: int) -> Iterator[bytes]:
    first = example_records.first_records(path, _FIRST_ROWS)
    # While it is drawn, the sample is up to twice as large.
    fit = most_bytes * len(first) // max(2 * sum(map(len, first)), 1)
    yield from within(spread(example_records.records(path), max(min(rows, fit), 1)), most_bytes)


def _first(path: str, rows: int, most_bytes: int) -> Iterator[bytes]:
    lists = example_records.records(path, at_once_bytes=_AT_ONCE_BYTES)
    yield from within(itertools.islice(itertools.chain.from_iterable(lists), rows), most_bytes)


def _columns(batch: pa.RecordBatch) -> dict[str, Column]:
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = _single(column)
        if values is not None:
            columns[name] = values
    return columns


def _single(column: pa.Array) -> Column | None:
    """Return the value of each row; None if rows have several values, or long ones."""
    if pa.types.is_null(column.type):
        return None
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    values = column.flatten()
    if lengths.max(initial=0) > 1:
        return None
    has = lengths == 1
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        numbers = np.full(len(lengths), np.nan)
        numbers[has] = values.to_numpy(zero_copy_only=False)
        return numbers
    if values.nbytes > _LONG_BYTES * max(len(values), 1):
        return None
    texts = np.full(len(lengths), None, dtype=object)
    texts[has] = [value.decode("utf-8", "replace") for value in values.to_pylist()]
    return texts
