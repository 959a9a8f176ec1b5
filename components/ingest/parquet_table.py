"""Reads Parquet files into typed columns. Lists of plain values are supported, structs and maps are not.

Booleans become 0 and 1. Decimals become fractions or, if their scale is 0, whole numbers. Dates and times
become text as Arrow formats them, UUIDs text in small letters, and durations whole numbers of their unit. A
row is rejected if it has a missing value inside a list, or bytes that are not UTF-8 in a column that the file
or `data.types` calls text.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slipway.components.ingest.blocks import (
    LIST_WITH_GAP,
    Block,
    FileError,
    FilePart,
    InputFile,
    Place,
    Reject,
    check_columns,
)
from slipway.components.ingest.column_types import Columns, ColumnType, type_of_arrow
from slipway.components.ingest.file_kinds import HEAD_BYTES, PARQUET, other_kind
from slipway.components.ingest.missing_values import MissingValues
from slipway.components.ingest.notations import Notations
from slipway.components.ingest.options import Options
from slipway.components.ingest.parquet_batches import Batch, batches, opened, row_group_pieces, schema_as_read
from slipway.components.ingest.source_limits import TOO_LARGE, SourceLimits

_RAW_VALUES = 20
_NO_TEXT = "not valid text"
_LISTS_OF_ONE_LENGTH = "Expected all lists to be of size"  # Arrow's words
# What Arrow raises for damaged files; a ValueError if a name in the file is not valid text.
_BROKEN = (pa.ArrowException, OSError, ValueError)
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")


def column_kinds(file: InputFile) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the columns that can be read, and a description of what each other column holds.

    Raises:
        FileError: the file cannot be read.
    """
    fields = list(_schema(file))
    nested = {each.name: f"nested values, {each.type}" for each in fields if type_of_arrow(each.type) is None}
    return tuple(each.name for each in fields if each.name not in nested), nested


def names(file: InputFile) -> tuple[str, ...]:
    """Return the columns, also those that cannot be read.

    Raises:
        FileError: the file cannot be read.
    """
    return tuple(_schema(file).names)


def boolean_columns(file: InputFile) -> frozenset[str]:
    """Return the columns of true and false, and of lists of them.

    Raises:
        FileError: the file cannot be read.
    """
    return frozenset(each.name for each in _open(file).schema_arrow if _is_boolean(each.type))


def infer(file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:
    """Return the columns of a file with the types of its schema; a type in `known` takes precedence.

    Raises:
        FileError: a chosen column is nested or unnamed, two columns share a name, or there are too many.
    """
    schema = _schema(file)
    types = dict(zip(schema.names, schema.types, strict=True))
    names = options.chosen(tuple(types), file=file.name)
    check_columns(names, options.limits, of=file.name)
    if len(types) < len(schema.names):
        [(name, _)] = Counter(schema.names).most_common(1)
        raise FileError(f"{file.name}: two columns are named {name!r}", hint="rename one of them")
    kinds: dict[str, ColumnType] = {}
    for name in names:
        if not name.strip():
            raise FileError(
                f"{file.name}: column {schema.names.index(name) + 1} has no name",
                hint="name it where the file is written, or choose the others with data.columns",
            )
        kind = type_of_arrow(types[name])
        if kind is None:
            raise FileError(
                f"{file.name}: column {name!r} is nested ({types[name]}); an example holds plain "
                "values and lists of them",
                hint="flatten it first, or choose the other columns with data.columns",
            )
        if zone := _unknown_zone(types[name]):
            raise FileError(
                f"{file.name}: column {name!r} has the time zone {zone[:80]!r}, which is unknown here",
                hint="write its times in UTC, or choose the other columns with data.columns",
            )
        if kind == ColumnType.TEXT and name in options.numbers:
            kind = ColumnType.FLOAT
        if kind == ColumnType.INT and name in options.dates:
            kind = ColumnType.TEXT
        kinds[name] = known.get(name, kind)
    return kinds


def parquet_pieces(file: InputFile, options: Options) -> list[FilePart]:
    """Return the row groups of a file, which are the smallest parts that it may be read in.

    Raises:
        FileError: the file cannot be read, or lacks a chosen column.
    """
    parquet = _open(file)
    names = options.chosen(tuple(parquet.schema_arrow.names), file=file.name)
    try:
        return row_group_pieces(parquet, names)
    except _BROKEN as error:
        raise _damaged(file, error, after=0) from error


def read(file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:
    """Yield the rows of a file or its part; a row's offset is its number in the file."""
    parquet = _open(file)
    names = options.chosen(tuple(parquet.schema_arrow.names), file=file.name)
    if set(names) != set(columns):
        lacking, more = sorted(set(columns) - set(names)), sorted(set(names) - set(columns))
        raise FileError(
            f"{file.name} has different columns from the files beside it: lacks {lacking}, also has {more}",
            hint="all files of a source need the same columns; choose some with data.columns",
        )
    metadata = parquet.metadata
    part = file.part or FilePart(0, file.path.stat().st_size, groups=range(metadata.num_row_groups))
    read_rows = part.rows
    notations, missing = Notations.of(options), MissingValues.of(options)
    bounded = batches(
        file.path, names, name=file.name, block_bytes=options.block_bytes, limits=options.limits, part=part
    )
    schema = schema_as_read(parquet)
    types = dict(zip(schema.names, schema.types, strict=True))
    texts = [name for name in names if options.types.get(name) == "text" or _is_string(types[name])]
    units = {name: unit for name in names if (unit := _duration_unit(types[name]))}
    try:
        share = part.size_bytes / max(sum(metadata.row_group(each).num_rows for each in part.groups), 1)
        for batch in bounded:
            block = _block(batch, options.limits, texts)
            plain = {
                name: notations.plain_bytes(name, missing.left_out_of(values))
                for name, values in block.columns.items()
            }
            read_rows = batch.first + block.rows + len(block.rejects)
            yield replace(
                block, columns=plain, units=units, position=part.begin + int((read_rows - part.rows) * share)
            )
    except MemoryError:
        raise
    except _BROKEN as error:
        raise _damaged(file, error, after=read_rows) from error


def _block(batch: Batch, limits: SourceLimits, texts: Collection[str]) -> Block:
    def place(row: int) -> Place:
        names = batch.rows.schema.names[:_RAW_VALUES]
        raw = {name: str(_value(batch.rows, name, row))[:200] for name in names}
        return Place(None, batch.first + row, repr(raw).encode())

    wrong = {row: (name, LIST_WITH_GAP) for row, name in _rows_with_gaps(batch.rows).items()}
    for name in texts:
        wrong |= dict.fromkeys(_rows_without_text(batch.rows[name]), (name, _NO_TEXT)) | wrong
    rows = np.setdiff1d(np.arange(batch.rows.num_rows), list(wrong))
    whole = batch.rows.take(pa.array(rows)) if wrong else batch.rows
    rejects = [
        Reject(why, place(row), name, repr(_value(batch.rows, name, row))[:80])
        for row, (name, why) in sorted(wrong.items())
    ]
    if batch.skipped:
        detail = f"{batch.skipped:,} bytes unpacked, {limits.exceeded('decoded_bytes')}"
        rejects.append(Reject(TOO_LARGE, Place(None, batch.first, b""), detail=detail))
    return Block(
        rows=whole.num_rows,
        columns={name: _plain(whole[name]) for name in whole.schema.names},
        rejects=rejects,
        find=lambda row: place(int(rows[row])),
    )


def _rows_with_gaps(batch: pa.RecordBatch) -> dict[int, str]:
    """Return the rows with a missing value inside a list, which an example cannot hold, with the column."""
    found: dict[int, str] = {}
    for name in batch.schema.names:
        values = batch[name]
        if not pa.types.is_nested(values.type) or not values.flatten().null_count:
            continue
        lists = values.cast(pa.large_list(values.type.value_type))
        parents = pc.list_parent_indices(lists).filter(pc.is_null(lists.flatten()))
        found |= dict.fromkeys(parents.unique().to_pylist(), name) | found
    return found


def _rows_without_text(values: pa.Array) -> list[int]:
    """Return the rows whose value, or any value in their list, is not UTF-8."""
    if pa.types.is_dictionary(values.type):
        wrong = pa.array(_rows_without_text(values.dictionary), values.indices.type)
        mask = pc.is_in(values.indices, value_set=wrong) if len(wrong) else None
        return pc.indices_nonzero(mask).to_pylist() if mask is not None else []
    if pa.types.is_nested(values.type):
        lists = values.cast(pa.large_list(values.type.value_type))
        if not (found := _rows_without_text(lists.flatten())):
            return []
        return sorted(set(pc.list_parent_indices(lists).take(pa.array(found)).to_pylist()))
    if not (
        _is_string(values.type) or pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
    ):
        return []
    plain = values.cast(pa.large_binary())
    if _is_utf8(plain):
        return []
    return [row for row in range(len(plain)) if not _is_utf8(plain[row : row + 1])]


def _is_utf8(values: pa.Array) -> bool:
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _is_string(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind) or pa.types.is_nested(kind):
        return hasattr(kind, "value_type") and _is_string(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_boolean(kind: pa.DataType) -> bool:
    return _is_boolean(kind.value_type) if hasattr(kind, "value_type") else bool(pa.types.is_boolean(kind))


def _value(rows: pa.RecordBatch, name: str, row: int) -> Any:
    """Return one value; an invalid text is returned as bytes, a time that Python cannot hold as its text."""
    value = rows[name].slice(row, 1)
    # Python has no nanoseconds; pandas has, but not every process may import it.
    if getattr(value.type, "unit", "") != "ns":
        with suppress(ValueError, OverflowError):
            return value[0].as_py()
    plain = _plain(value)[0].as_py()
    return plain.decode() if pa.types.is_temporal(value.type) and isinstance(plain, bytes) else plain


def _plain(values: pa.Array) -> pa.Array:
    """Convert to int64, float64, large_binary, null, uint64 or decimals, or to large lists of these."""
    kind = values.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        values = values.cast(pa.large_list(kind.value_type))
    if pa.types.is_large_list(values.type):
        counts = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        flat = values.flatten()
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int64())
        return pa.LargeListArray.from_arrays(offsets, _plain(flat))
    if pa.types.is_dictionary(kind):
        return _plain(values.dictionary_decode())
    wanted = {
        ColumnType.UNKNOWN: pa.null(),
        ColumnType.INT: pa.int64(),
        ColumnType.FLOAT: pa.float64(),
        ColumnType.TEXT: pa.large_binary(),
    }[type_of_arrow(kind) or ColumnType.UNKNOWN]
    if pa.types.is_duration(kind):
        return values.cast(pa.int64())
    if pa.types.is_temporal(kind):
        values = _times_as_text(values)
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    if pa.types.is_uint64(kind) or pa.types.is_decimal(kind):
        return values  # not all of these fit into int64 or float64
    return values.cast(wanted)


def _duration_unit(kind: pa.DataType) -> str:
    """Return the unit of a type of durations, or of a list's items; "" for any other."""
    if hasattr(kind, "value_type"):
        return _duration_unit(kind.value_type)
    return str(kind.unit) if pa.types.is_duration(kind) else ""


def _unknown_zone(kind: pa.DataType) -> str:
    """Return the time zone of a type of times, or of a list's items, if Arrow does not know it; else ""."""
    if hasattr(kind, "value_type"):
        return _unknown_zone(kind.value_type)
    zone = str(getattr(kind, "tz", None) or "")
    try:
        if zone:
            _times_as_text(pa.array([0], kind))
    except pa.ArrowInvalid:
        return zone
    return ""


def _times_as_text(values: pa.Array) -> pa.Array:
    """Format dates and times as Arrow does, which knows the names of time zones but no offsets (+05:30)."""
    found = _OFFSET.fullmatch(getattr(values.type, "tz", None) or "")
    if found is None:
        return values.cast(pa.large_string())
    sign, hours, minutes = found.groups()
    offset = pa.scalar(int(f"{sign}1") * (int(hours) * 3600 + int(minutes) * 60), pa.duration("s"))
    # A time beyond Arrow's years stays one. Nanoseconds have none: there the next is centuries away.
    add = pc.add_checked if values.type.unit == "ns" else pc.add
    local = add(values.view(pa.timestamp(values.type.unit)), offset).cast(pa.large_string())
    ends = (pa.scalar(each, pa.large_string()) for each in (f"{sign}{hours}{minutes}", ""))
    return pc.binary_join_element_wise(local, *ends)


def _schema(file: InputFile) -> pa.Schema:
    try:
        return schema_as_read(_open(file))
    except RecursionError as error:
        raise FileError(f"{file.name}: a column is nested too deeply", hint="flatten it first") from error


def _open(file: InputFile) -> pq.ParquetFile:
    try:
        return opened(file.path)
    except _BROKEN as error:
        raise _damaged(file, error, after=0) from error


def _damaged(file: InputFile, error: Exception, *, after: int) -> FileError:
    with file.path.open("rb") as stream:
        other = None if after else other_kind(stream.read(HEAD_BYTES))
    if other and other[0] != PARQUET:
        return FileError(f"{file.name} is {other[0]}, not Parquet", hint=other[1])
    words = str(error).partition("\n")[0][:200]
    if _LISTS_OF_ONE_LENGTH in words:
        return FileError(
            f"{file.name}: a column of lists of one length lacks a list in some rows: Arrow cannot read it",
            hint="write it as lists of any length, with the type pyarrow.list_(TYPE) and no size",
        )
    where = f" after row {after}" if after else ""
    return FileError(
        f"{file.name} is not a readable Parquet file{where}: {words}",
        hint="write it again; a Parquet file ends with its metadata, so a partial one cannot be read",
    )
