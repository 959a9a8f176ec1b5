"""Reads TFRecord files of tf.Examples: each record is checked to be an Example, and passed on unchanged.

A tf.SequenceExample becomes a tf.Example, in which each feature list is a list of values.
"""

from collections.abc import Callable, Collection, Iterator

import pyarrow as pa

from slipway.components.ingest.blocks import Block, FileError, InputFile, Place, Reject, check_columns
from slipway.components.ingest.column_types import Columns, ColumnType
from slipway.components.ingest.compression import Stream
from slipway.components.ingest.encoded_images import problem_in_example
from slipway.components.ingest.example_message import (
    SequenceError,
    example_of_sequence,
    find_value,
    parse_example,
)
from slipway.components.ingest.options import Options
from slipway.components.ingest.source_limits import TOO_LARGE, TOO_LONG
from slipway.components.ingest.tfrecord import BrokenRecord, read_records

_OTHER_TYPE = "a value of another type than other records"
WRITE_FEWER = "write the examples anew with the features that you need"
"""The remedy for too many features, of which none can be chosen: examples are passed on as they are."""
_OTHER = "it has other fields, or is not a protobuf message"


def infer(file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:  # noqa: ARG001
    """Return only the column to split by, with its first value's type: records are not split into columns."""
    column = options.split_column
    if column is None:
        return {}
    for record in _good(file, options):
        value = find_value(record, column)
        if value is not None:
            kinds = {int: ColumnType.INT, float: ColumnType.FLOAT, bytes: ColumnType.TEXT}
            return {column: kinds[type(value)]}
    return {column: ColumnType.UNKNOWN}


def read(file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:
    """Yield the records of a file.

    Raises:
        FileError: a record's length is wrong, so no record after it can be found; there are too many
            features.
    """
    features: set[str] = set()
    records: list[bytes] = []
    offsets: list[int] = []
    rejects: list[Reject] = []
    size = 0
    for item in read_records(Stream(file), max_bytes=options.limits.row_bytes):
        if isinstance(item, BrokenRecord):
            if item.is_end:
                raise _cut(file, item)
            detail = options.limits.exceeded("row_bytes") if item.reason == TOO_LONG else ""
            rejects.append(Reject(item.reason, Place(None, item.offset, item.data), detail=detail))
            size += len(item.data)
            continue
        offset, record = item
        size += len(record)
        example, why, names = _as_example(record)
        features.update(names)
        check_columns(features, options.limits, of=file.name, remedy=WRITE_FEWER)
        if example is None:
            rejects.append(Reject("not a tf.Example", Place(None, offset, record), detail=why))
        elif name := _column_of_another_type(example, columns):
            rejects.append(Reject(_OTHER_TYPE, Place(None, offset, record), name))
        elif found := problem_in_example(example, options.limits):
            rejects.append(Reject(TOO_LARGE, Place(None, offset, record), *found))
        else:
            records.append(example)
            offsets.append(offset)
        if size >= options.block_bytes:
            yield _block(records, offsets, rejects, columns, features)
            records, offsets, rejects, size = [], [], [], 0
    yield _block(records, offsets, rejects, columns, features)


def _good(file: InputFile, options: Options) -> Iterator[bytes]:
    for item in read_records(Stream(file), max_bytes=options.limits.row_bytes):
        if not isinstance(item, BrokenRecord) and (example := _as_example(item[1])[0]) is not None:
            yield example


def _as_example(record: bytes) -> tuple[bytes | None, str, Collection[str]]:
    """Return the record as a tf.Example, "" and the names of its features; if it is not one, None and why."""
    if (found := parse_example(record)) is not None:
        return record, "", found.features.feature
    try:
        record_of_sequence = example_of_sequence(record)
    except SequenceError as error:
        return None, f"it is a SequenceExample, but {error}", ()
    if record_of_sequence is None:
        return None, _OTHER, ()
    return record_of_sequence, "", parse_example(record_of_sequence).features.feature


def _block(
    records: list[bytes],
    offsets: list[int],
    rejects: list[Reject],
    columns: Columns,
    features: Collection[str],
) -> Block:
    arrow = {
        ColumnType.INT: pa.int64(),
        ColumnType.FLOAT: pa.float64(),
        ColumnType.TEXT: pa.large_binary(),
        ColumnType.UNKNOWN: pa.null(),
    }
    return Block(
        rows=len(records),
        columns={
            name: pa.array([_of_kind(find_value(record, name), kind) for record in records], arrow[kind])
            for name, kind in columns.items()
        },
        records=pa.array(records, pa.large_binary()),
        rejects=rejects,
        find=_finder(records, offsets),
        features=features,
        position=offsets[-1] if offsets else 0,
    )


def _column_of_another_type(record: bytes, columns: Columns) -> str:
    """Return the first column whose value has not the column's type; "" if there is none."""
    for name, kind in columns.items():
        value = find_value(record, name)
        if value is not None and _of_kind(value, kind) is None:
            return name
    return ""


def _of_kind(value: int | float | bytes | None, kind: ColumnType) -> int | float | bytes | None:
    """Return the value as one of the column's type; None if it is not one."""
    if kind == ColumnType.TEXT:
        return value if isinstance(value, bytes) else None
    if kind == ColumnType.UNKNOWN or not isinstance(value, int | float):
        return None
    if kind == ColumnType.FLOAT:
        return float(value)
    return int(value) if float(value).is_integer() else None


def _finder(records: list[bytes], offsets: list[int]) -> Callable[[int], Place]:
    return lambda row: Place(None, offsets[row], records[row])


def _cut(file: InputFile, item: BrokenRecord) -> FileError:
    return FileError(
        f"{file.name} cannot be read from byte {item.offset} on: {item.reason}",
        hint="it is not a TFRecord file, or is damaged there; compressed files must be named .gz, "
        ".bz2 or .zst",
    )
