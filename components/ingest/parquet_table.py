"""Parquet files to blocks of typed columns. Lists of plain values are kept; structs and maps are refused.

Booleans become 0 and 1, decimals fractions or, without decimals, whole numbers; dates and times text as Arrow
writes them, durations whole numbers of their unit. A row with a missing value inside a list is rejected.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from components.ingest.blocks import LIST_WITH_GAP, Block, FileError, InputFile, Place, Reject
from components.ingest.column_types import Columns, ColumnType, type_of_arrow
from components.ingest.options import Options
from components.ingest.written_values import WrittenValues

_BATCH_ROWS = 32_768
_RAW_VALUES = 20
# What Arrow raises over damaged files; a ValueError where a name in it is no text.
_BROKEN = (pa.ArrowException, OSError, ValueError)


def infer(file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:
    """The columns of a file by its own schema; a type in `known` takes precedence.

    Raises:
        FileError: a chosen column is nested.
    """
    schema = _open(file).schema_arrow
    names = options.chosen(tuple(schema.names), file=file.name)
    kinds: dict[str, ColumnType] = {}
    for name in names:
        if not name.strip():
            raise FileError(
                f"{file.name}: column {schema.names.index(name) + 1} has no name",
                hint="name it where the file is written, or choose the others with data.columns",
            )
        if schema.names.count(name) > 1:
            raise FileError(f"{file.name}: two columns are named {name!r}", hint="rename one of them")
        kind = type_of_arrow(schema.field(name).type)
        if kind is None:
            raise FileError(
                f"{file.name}: column {name!r} is nested ({schema.field(name).type}); an example holds plain "
                "values and lists of them",
                hint="flatten it before, or choose the other columns with data.columns",
            )
        if kind == ColumnType.TEXT and name in options.numbers:
            kind = ColumnType.FLOAT
        kinds[name] = known.get(name, kind)
    return kinds


def read(file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:
    """The rows of a file; the row's number stands for its offset."""
    parquet = _open(file)
    names = options.chosen(tuple(parquet.schema_arrow.names), file=file.name)
    if set(names) != set(columns):
        missing, more = sorted(set(columns) - set(names)), sorted(set(names) - set(columns))
        raise FileError(
            f"{file.name} has other columns than the files beside it: lacks {missing}, has also {more}",
            hint="all files of a source need the same columns; choose some with data.columns",
        )
    first, written = 0, WrittenValues.of(options)
    rows, size_bytes = _batch_rows(parquet, options.block_bytes), file.path.stat().st_size
    try:
        for batch in parquet.iter_batches(batch_size=rows, columns=list(names), use_threads=False):
            yield _block(batch, first, size_bytes, parquet.metadata.num_rows, written)
            first += batch.num_rows
    except _BROKEN as error:
        raise _damaged(file, error, after=first) from error


def _batch_rows(parquet: pq.ParquetFile, block_bytes: int) -> int:
    """Few rows at a time where each is large, as images are."""
    metadata = parquet.metadata
    size_bytes = sum(metadata.row_group(index).total_byte_size for index in range(metadata.num_row_groups))
    fitting = block_bytes * metadata.num_rows // max(size_bytes, 1)
    return int(max(1, min(fitting, _BATCH_ROWS)))


def _block(
    batch: pa.RecordBatch, first: int, size_bytes: int, all_rows: int, written: WrittenValues
) -> Block:
    def place(row: int) -> Place:
        raw = {name: str(batch[name][row].as_py())[:200] for name in batch.schema.names[:_RAW_VALUES]}
        return Place(None, first + row, repr(raw).encode())

    gaps = _rows_with_gaps(batch)
    rows = np.setdiff1d(np.arange(batch.num_rows), list(gaps))
    whole = batch.take(pa.array(rows)) if gaps else batch
    return Block(
        rows=whole.num_rows,
        columns={name: written.plain_bytes(name, _plain(whole[name])) for name in whole.schema.names},
        rejects=[
            Reject(LIST_WITH_GAP, place(row), name, repr(batch[name][row].as_py())[:80])
            for row, name in sorted(gaps.items())
        ],
        find=lambda row: place(int(rows[row])),
        position=size_bytes * (first + batch.num_rows) // max(all_rows, 1),
    )


def _rows_with_gaps(batch: pa.RecordBatch) -> dict[int, str]:
    """The rows with a missing value inside a list, for which an example has no place, and its column."""
    found: dict[int, str] = {}
    for name in batch.schema.names:
        values = batch[name]
        if not pa.types.is_nested(values.type) or not values.flatten().null_count:
            continue
        lists = values.cast(pa.large_list(values.type.value_type))
        parents = pc.list_parent_indices(lists).filter(pc.is_null(lists.flatten()))
        found |= dict.fromkeys(parents.unique().to_pylist(), name) | found
    return found


def _plain(values: pa.Array) -> pa.Array:
    """int64, float64, large_binary or null, uint64 or decimals, or large lists of these."""
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
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        values = values.cast(pa.large_string())
    if pa.types.is_duration(kind):
        return values.cast(pa.int64())
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    if pa.types.is_uint64(kind) or pa.types.is_decimal(kind):
        return values  # not each of these is an int64 or a float64
    return values.cast(wanted)


def _open(file: InputFile) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file.path, page_checksum_verification=True)
    except _BROKEN as error:
        raise _damaged(file, error, after=0) from error


def _damaged(file: InputFile, error: Exception, *, after: int) -> FileError:
    words = str(error).partition("\n")[0][:200]
    where = f" after row {after}" if after else ""
    return FileError(
        f"{file.name} is no Parquet that can be read{where}: {words}",
        hint="write it again; a Parquet file ends with its table of contents, so a part of one is nothing",
    )
