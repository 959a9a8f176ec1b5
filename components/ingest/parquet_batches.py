"""Reads the rows of a Parquet file in pieces of bounded size, however strongly it is compressed.

A text that occurs a thousand times in a column is stored once, and so is a run of equal numbers: a file of a
few hundred bytes may expand to gigabytes. The file's metadata gives the unpacked size of each column chunk;
columns that repeat whole texts are read as dictionaries, and unpacked for as many rows as fit.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slipway.components.ingest.blocks import FileError, FilePart
from slipway.components.ingest.options import MEBIBYTE
from slipway.components.ingest.source_limits import SourceLimits

_MOST_ROWS = 32_768
_NUMBER_BYTES, _INDEX_BYTES = 8, 4
# A limit for the fixed-width values of a batch, which take their width unpacked, whatever their size in the
# file.
_NUMBERS_BYTES = 16 * MEBIBYTE
# Text, numbers and images are compressed ten- to thirtyfold at best; gigabytes of one letter
# ten-thousandfold.
_PACKED_FOLD = 100
_UUID_BYTES, _UUID_LETTERS = 16, 36
_UUID_DIGITS = [place for place in range(_UUID_LETTERS) if place not in (8, 13, 18, 23)]
_DICTIONARIES = {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}
_PREFIXES = "DELTA_BYTE_ARRAY"  # stores only how a value differs from the previous one


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A column chunk, as described by the file's metadata.

    Attributes:
        path: the column's path; for a list "name.list.element".
        group: the number of the row group.
        values: the number of values, including each value in a list.
        is_text: whether values have different lengths.
        is_list: whether a row may have several values.
        value_bytes: unpacked size of a value in bytes; for a text, that of its index in a dictionary.
        packed: bytes in the file.
        unpacked: bytes of the uncompressed pages.
    """

    path: str
    group: int
    rows: int
    values: int
    is_text: bool
    is_list: bool
    value_bytes: int
    encodings: frozenset[str]
    packed: int
    unpacked: int

    @property
    def at_once(self) -> int:
        """The number of bytes that may have to be unpacked for one row."""
        return max(self.unpacked, self.values * self.value_bytes if self.is_list else self.value_bytes)

    @property
    def in_memory(self) -> int:
        """About how many bytes it takes as it is read."""
        return max(self.unpacked, self.values * self.value_bytes, 0)


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows.

    Attributes:
        rows: columns as Arrow reads them; texts may be dictionaries.
        first: the number of the first row in the file, from 0.
        skipped: 0, or the unpacked size in bytes of a single row that is too large; `rows` is then empty.
    """

    rows: pa.RecordBatch
    first: int
    skipped: int = 0


def opened(path: Path, *, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    """Open a file whose pages are verified by their checksums, if they have any.

    Args:
        dictionaries: the columns of texts to read as dictionaries.
    """
    return pq.ParquetFile(
        path,
        read_dictionary=list(dictionaries),
        page_checksum_verification=True,
        # Spark and Hive write times so. Nanoseconds, Arrow's default, end in 2262, and begin again.
        coerce_int96_timestamp_unit="us",
    )


def schema_as_read(parquet: pq.ParquetFile) -> pa.Schema:
    """Return the columns with the types that `batches` yields: UUIDs, and lists of them, are text."""
    uuids, text = _uuids(parquet), pa.large_string()
    return pa.schema(
        field.with_type(pa.large_list(text) if _is_list(field.type) else text)
        if field.name in uuids
        else field
        for field in parquet.schema_arrow
    )


def with_uuids_as_text(table: pa.Table, path: Path) -> pa.Table:
    """Return the table with the columns of UUIDs as `batches` yields them, in a table read from the file."""
    if not any(pa.types.is_fixed_size_binary(kind) or _is_extension(kind) for kind in table.schema.types):
        return table
    with opened(path) as parquet:
        uuids = _uuids(parquet)
    for place, name in enumerate(table.schema.names):
        if name in uuids and not _is_list(table.schema.types[place]):
            chunks = [_uuids_as_text(chunk) for chunk in table.column(place).chunks]
            table = table.set_column(place, name, pa.chunked_array(chunks, pa.large_string()))
    return table


def _is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


def row_group_pieces(parquet: pq.ParquetFile, names: Collection[str]) -> list[FilePart]:
    """Return each row group as a part of the file; its bytes are about those of some columns in memory."""
    groups = range(parquet.metadata.num_row_groups)
    sizes = [0 for _ in groups]
    for chunk in _chunks(parquet, set(names), groups):
        sizes[chunk.group] += chunk.in_memory
    pieces: list[FilePart] = []
    begin = rows = 0
    for group, size in zip(groups, sizes, strict=True):
        pieces.append(FilePart(begin, begin + size, rows=rows, groups=range(group, group + 1)))
        begin, rows = begin + size, rows + parquet.metadata.row_group(group).num_rows
    return pieces


def batches(
    path: Path,
    names: Sequence[str],
    *,
    name: str,
    block_bytes: int,
    limits: SourceLimits,
    part: FilePart | None = None,
) -> Iterator[Batch]:
    """Yield the rows of some columns of a file or its part, in order.

    Args:
        name: the file's name as the user knows it.
        block_bytes: approximate unpacked size of a batch.
        limits: `decoded_bytes` limits the unpacked size of a row, and of a column chunk that is compressed
            more than a hundredfold.

    Raises:
        FileError: a column chunk is above the limit.
        pyarrow.ArrowException, OSError, ValueError: the file is damaged.
    """
    with opened(path) as parquet:
        groups = part.groups if part else range(parquet.metadata.num_row_groups)
        chunks = list(_chunks(parquet, set(names), groups))
        wanted = sum(parquet.metadata.row_group(group).num_rows for group in groups)
    for chunk in chunks:
        _check(chunk, limits, name)
    with opened(path, dictionaries=_as_dictionaries(chunks)) as parquet:
        first, found = part.rows if part else 0, 0
        uuids = _uuids(parquet)
        entries = 0
        rows = _batch_rows(chunks, block_bytes, limits)
        # Arrow has no lists of texts from the dictionaries of several row groups.
        together = [[group] for group in groups] if any(chunk.is_list for chunk in chunks) else [list(groups)]
        for batch in itertools.chain.from_iterable(
            parquet.iter_batches(batch_size=rows, row_groups=each, columns=list(names), use_threads=False)
            for each in together
        ):
            entries += sum(map(_entries, batch.columns))
            yield from _parts(_with_texts(batch, uuids), first, block_bytes, limits)
            first += batch.num_rows
            found += batch.num_rows
    if found != wanted:
        # Arrow ends with the shortest column, and what a damaged page lacks is taken from the rows below.
        raise pa.ArrowInvalid(f"its metadata counts {wanted:,} rows, but its columns hold {found:,}")
    expected = sum(chunk.values for chunk in chunks if chunk.is_list)
    if entries != expected:
        # A damaged page divides its values among more rows: the rows after it have moved, some are left over.
        raise pa.ArrowInvalid(
            f"its metadata counts {expected:,} values in lists, but its rows hold {entries:,}"
        )


def _chunks(parquet: pq.ParquetFile, names: Collection[str], groups: Iterable[int]) -> Iterator[_Chunk]:
    schema, metadata = parquet.schema, parquet.metadata
    chosen = [
        (index, column)
        for index in range(metadata.num_columns)
        if _is_in((column := schema.column(index)).path, names)
    ]
    for group in groups:
        row_group = metadata.row_group(group)
        for index, column in chosen:
            chunk = row_group.column(index)
            is_text = chunk.physical_type == "BYTE_ARRAY"
            is_fixed = chunk.physical_type == "FIXED_LEN_BYTE_ARRAY"
            width = _INDEX_BYTES if is_text else column.length if is_fixed else _NUMBER_BYTES
            yield _Chunk(
                path=column.path,
                group=group,
                rows=row_group.num_rows,
                values=chunk.num_values,
                is_text=is_text,
                is_list=column.max_repetition_level > 0,
                value_bytes=width,
                encodings=frozenset(chunk.encodings),
                packed=chunk.total_compressed_size,
                unpacked=chunk.total_uncompressed_size,
            )


def _entries(values: pa.Array) -> int:
    """Return the values in a column's lists as Parquet counts them; 0 for a column without lists.

    A list that is empty or missing has one.
    """
    if not _is_list(values.type):
        return 0
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    return int(np.maximum(lengths, 1).sum(dtype=np.int64))


def _uuids(parquet: pq.ParquetFile) -> set[str]:
    """Return the columns of UUIDs, and of lists of them, as Arrow or Parquet mark them."""
    found = set()
    leaf = 0
    for field in parquet.schema_arrow:
        is_marked = parquet.schema.column(leaf).logical_type.type == "UUID"
        kind = field.type.value_type if _is_list(field.type) else field.type
        # Parquet's mark is for the 16 bytes of one; Arrow, which has none for them before its version 21,
        # notes its own type in the file.
        if getattr(kind, "extension_name", "") == "arrow.uuid" or (
            is_marked and pa.types.is_fixed_size_binary(kind)
        ):
            found.add(field.name)
        leaf += _leaves(field.type)
    return found


def _leaves(kind: pa.DataType) -> int:
    """Return how many of Parquet's columns a column of Arrow's takes."""
    return sum(_leaves(kind.field(each).type) for each in range(kind.num_fields)) or 1


def _with_texts(batch: pa.RecordBatch, uuids: set[str]) -> pa.RecordBatch:
    for name in uuids.intersection(batch.schema.names):
        place = batch.schema.names.index(name)
        batch = batch.set_column(place, name, _uuids_as_text(batch.column(place)))
    return batch


def _uuids_as_text(values: pa.Array) -> pa.Array:
    """Write UUIDs, 16 bytes each, in small letters with hyphens, as Python and DuckDB do."""
    if _is_list(values.type):
        counts = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int64())
        return pa.LargeListArray.from_arrays(offsets, _uuids_as_text(values.flatten()))
    stored = values.storage if isinstance(values, pa.ExtensionArray) else values
    digits = b"".join(stored.fill_null(bytes(_UUID_BYTES)).to_pylist()).hex().encode()
    letters = np.full((len(stored), _UUID_LETTERS), ord("-"), np.uint8)
    letters[:, _UUID_DIGITS] = np.frombuffer(digits, np.uint8).reshape(len(stored), 2 * _UUID_BYTES)
    texts = pa.Array.from_buffers(
        pa.large_string(),
        len(stored),
        [
            None,
            pa.py_buffer(np.arange(len(stored) + 1, dtype=np.int64) * _UUID_LETTERS),
            pa.py_buffer(letters),
        ],
    )
    return pc.if_else(stored.is_valid(), texts, pa.scalar(None, pa.large_string()))


def _is_in(path: str, names: Collection[str]) -> bool:
    """Return True if a path is one of the columns, or leads into one; names may contain dots."""
    steps = path.split(".")
    return any(".".join(steps[: end + 1]) in names for end in range(len(steps)))


def _check(chunk: _Chunk, limits: SourceLimits, name: str) -> None:
    fold = _PACKED_FOLD * max(chunk.packed, 1)
    if chunk.at_once > max(limits.decoded_bytes, fold) or chunk.value_bytes > limits.decoded_bytes:
        raise FileError(
            f"{name}: column {chunk.path.partition('.')[0]!r} takes {chunk.at_once:,} bytes unpacked in row "
            f"group {chunk.group}, from {chunk.packed:,} in the file, {limits.exceeded('decoded_bytes')}",
            hint="write it with smaller row groups; if you trust it, raise data.limits.decoded_bytes",
        )


def _as_dictionaries(chunks: Sequence[_Chunk]) -> list[str]:
    """Return the columns to read as dictionaries: those that repeat whole texts.

    Arrow cannot read columns in this way if they are also encoded by prefixes.
    """
    texts = {chunk.path for chunk in chunks if chunk.is_text and chunk.encodings & _DICTIONARIES}
    return sorted(texts - {chunk.path for chunk in chunks if _PREFIXES in chunk.encodings})


def _batch_rows(chunks: Sequence[_Chunk], block_bytes: int, limits: SourceLimits) -> int:
    """Return how many rows fit into a batch, by the mean size in each row group and at worst; >= 1."""
    unpacked: dict[int, int] = {}
    width: dict[int, int] = {}
    fitting = [_MOST_ROWS]
    for chunk in chunks:
        unpacked[chunk.group] = unpacked.get(chunk.group, 0) + max(chunk.unpacked, 0)
        width[chunk.group] = width.get(chunk.group, 0) + chunk.value_bytes
        if _PREFIXES in chunk.encodings:  # each value may be as long as the whole chunk
            fitting.append(limits.decoded_bytes // max(chunk.unpacked, 1))
    rows = {chunk.group: chunk.rows for chunk in chunks}
    fitting += [block_bytes * rows[group] // max(size, 1) for group, size in unpacked.items()]
    fitting += [_NUMBERS_BYTES // max(size, 1) for size in width.values()]
    return int(max(min(fitting), 1))


def _parts(batch: pa.RecordBatch, first: int, block_bytes: int, limits: SourceLimits) -> Iterator[Batch]:
    """Split a batch into pieces of bounded unpacked size; rows that are too large are skipped."""
    sizes = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        sizes += _row_bytes(column)
    blocks = np.cumsum(sizes) // block_bytes
    ends = [*(np.flatnonzero(np.diff(blocks)) + 1).tolist(), batch.num_rows]
    begin = 0
    for end in ends:
        for row in (begin + np.flatnonzero(sizes[begin:end] > limits.decoded_bytes)).tolist():
            if row > begin:
                yield Batch(batch.slice(begin, row - begin), first + begin)
            yield Batch(batch.slice(row, 0), first + row, skipped=int(sizes[row]))
            begin = row + 1
        if end > begin:
            yield Batch(batch.slice(begin, end - begin), first + begin)
        begin = end


def _row_bytes(column: pa.Array) -> npt.NDArray[np.int64] | int:
    """Return the unpacked size of each row's value in bytes; numbers, which are small, count as 0."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _row_bytes(column.flatten())
        counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        if isinstance(inner, int):
            return np.asarray(counts * _NUMBER_BYTES)
        ends = np.concatenate([[0], np.cumsum(inner)])
        bounds = np.concatenate([[0], np.cumsum(counts)])
        return np.asarray(np.diff(ends[bounds]), dtype=np.int64)
    if pa.types.is_dictionary(kind):
        lengths = _row_bytes(column.dictionary)
        if isinstance(lengths, int) or not len(lengths):
            return lengths if isinstance(lengths, int) else 0
        indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths[indices], 0)
    if any(check(kind) for check in _TEXTS):
        return np.asarray(pc.fill_null(pc.binary_length(column), 0), dtype=np.int64)
    return kind.byte_width if pa.types.is_fixed_size_binary(kind) else 0


def _is_list(kind: pa.DataType) -> bool:
    return any(check(kind) for check in _LISTS)


_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
