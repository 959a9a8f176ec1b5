"""Reads logged requests: the rows that a version has answered, with times and positions in files."""

import contextlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet as pq

from slipway.components.data_gate.finding import RowQuery, SampleRow
from slipway.components.data_gate.raw_rows import MOST_ROWS, matches
from slipway.components.data_gate.statistics import Kind
from slipway.components.ingest.parquet_batches import with_uuids_as_text
from slipway.components.request_log.request_log import MOST_LINE_BYTES
from slipway.components.request_log.reserved_columns import AT, VERSION
from slipway.pipeline.errors import UsageError
from slipway.pipeline.watch.log_folder import JSON_LINES, PARQUET, Logs, checked, unreadable_log

_TYPES: Mapping[Kind, pa.DataType] = {"int": pa.int64(), "float": pa.float32(), "text": pa.string()}
_PYTHON_TYPES: Mapping[pa.DataType, tuple[type, ...]] = {
    pa.int64(): (int,),
    pa.float32(): (int, float),
    pa.string(): (str,),
}
_OWN = {AT: pa.string(), VERSION: pa.int64()}
_MOST_SEARCHED = 200_000  # rows to search for those that show a finding
_SHOWN = 60


@dataclass(frozen=True)
class Requests:
    """The rows that a version has answered, in no particular order.

    Attributes:
        table: the columns to compare, which each file with such rows has.
        at_ms: when each row was answered, in milliseconds since 1970.
        file: the index of each row's file in `files`.
        row: the number of each row in its file, from 0.
        lacking: how many files lack a column that others have, by column; it is not in the table.
        misfits: how many rows are left out, since a value has another type than its column.
    """

    table: pa.Table
    at_ms: npt.NDArray[np.int64]
    files: Sequence[str]
    file: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    lacking: Mapping[str, int] = field(default_factory=dict)
    misfits: int = 0

    def dated_before(self, end_ms: int) -> "Requests":
        """Return the rows that were answered before a time."""
        rows = np.flatnonzero(self.at_ms < end_ms)
        if len(rows) == len(self.at_ms):
            return self
        kept = (each[rows] for each in (self.at_ms, self.file, self.row))
        at_ms, file, row = kept
        return replace(self, table=self.table.take(rows), at_ms=at_ms, file=file, row=row)

    def showing(self, query: RowQuery, rows: npt.NDArray[np.int64]) -> tuple[SampleRow, ...]:
        """Return up to five of the given rows that show a finding; only the first 200,000 are searched."""
        found = []
        rows = rows[:_MOST_SEARCHED]
        for row, cell in zip(rows.tolist(), self.table[query.column].take(rows).to_pylist(), strict=True):
            if matches(cell, query):
                name, at = self.files[self.file[row]], int(self.row[row])
                shown = str("" if cell is None else cell)[:_SHOWN]
                found.append(SampleRow(name, at + 1 if name.endswith(JSON_LINES) else None, at, shown))
                if len(found) == MOST_ROWS:
                    break
        return tuple(found)


def read_requests(logs: Logs, kinds: Mapping[str, Kind], version: int) -> Requests:
    """Read the requests that a version has answered.

    A last line without a line break was truncated by a kill or a full disk, and is left out. So is a file
    that the log has meanwhile removed to make room.

    Args:
        logs: log files in the format of `serve` and `predict`.
        kinds: the types of the columns to compare; only columns that every file with rows of the version has
            are returned.

    Raises:
        UsageError: there is no such folder, file, column or request, or a file cannot be read.
    """
    if not logs.files:
        raise no_requests(logs.folder)
    tables, at_ms, places = [], [], []
    others: set[int] = set()
    misfits = 0
    for number, file in enumerate(logs.files):
        columns = _columns_of(file.path, kinds)
        if columns is None:  # even if it has a row by now
            continue
        types = _OWN | {name: _TYPES[kinds[name]] for name in columns}
        chosen, rows, versions, left_out = _of_version(file.path, types, version)
        misfits += left_out
        others |= versions - {version}
        if not len(rows):  # it may have been logged with other columns
            continue
        if not columns:
            raise UsageError(
                f"{file.path} has no column of the version's data.",
                hint="are these the requests of this workload?",
            )
        at_ms.append(_times(file.path, chosen[AT]))
        tables.append(chosen.select(columns))
        places.append(np.stack([np.full(len(rows), number), rows]))
    if not tables:
        named = f"those there are of {', '.join(map(str, sorted(others)))}" if others else "it holds no row"
        raise UsageError(
            f"{logs.folder} holds no request that version {version} answered; {named}.",
            hint="choose one of those with --version" if others else "wait until the version gets requests",
        )
    counts = Counter(name for table in tables for name in table.column_names)
    shared = [name for name in kinds if counts[name] == len(tables)]
    if not shared:
        raise UsageError(
            f"The files of version {version} in {logs.folder} have no column in common that its data has.",
            hint="remove the older ones, which were logged with other columns",
        )
    file_numbers, rows = np.concatenate(places, axis=1)
    return Requests(
        table=pa.concat_tables([table.select(shared) for table in tables]),
        at_ms=np.concatenate(at_ms),
        files=[file.name for file in logs.files],
        file=file_numbers,
        row=rows,
        lacking={name: len(tables) - counts[name] for name in kinds if 0 < counts[name] < len(tables)},
        misfits=misfits,
    )


def no_requests(folder: Path) -> UsageError:
    """Return the error for a folder without logged requests, or one that cannot be searched for any."""
    if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):  # which looks empty
        return UsageError(
            f"{folder} cannot be read: only its owner may, who logs the requests.",
            hint="run this as its owner",
        )
    there = "holds no *.jsonl, *.parquet or *.tfrecord" if folder.is_dir() else "does not exist"
    return UsageError(
        f"{folder} {there}: there are no logged requests.",
        hint="name columns in request_log, then serve or predict; or name their folder with --on",
    )


def _columns_of(file: Path, kinds: Mapping[str, Kind]) -> list[str] | None:
    """Return the columns to compare that a file has; None if it has no complete row or no longer exists."""
    names = names_of(file)
    if names is None:
        return None
    if missing := [name for name in _OWN if name not in names]:
        raise UsageError(
            f"{file} has no column {missing[0]}, so it is not a log of requests.",
            hint=f"its rows need {AT} (ISO 8601) and {VERSION}, as serve and predict write them",
        )
    return [name for name in kinds if name in names]


def names_of(file: Path) -> set[str] | None:
    """Return the columns of a file, from its first row; None if it has no complete row or no longer exists.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        if file.suffix == PARQUET:
            return set(pq.read_schema(file).names)
        with file.open("rb") as lines:
            first = lines.readline(MOST_LINE_BYTES + 1)
        if len(first) > MOST_LINE_BYTES:
            raise unreadable_log(file, f"its first line has more than {MOST_LINE_BYTES:,} bytes.")
        return set(orjson.loads(first)) if first.endswith(b"\n") else None
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise _unreadable(file, error) from error


def _of_version(
    file: Path, types: Mapping[str, pa.DataType], version: int
) -> tuple[pa.Table, npt.NDArray[np.int64], set[int], int]:
    """Return the rows of a file that a version has answered, their numbers, and all versions in the file.

    The last is how many rows of the version are left out, since a value has another type than its column.
    """
    try:
        own = whole = _read(file, types)
    except UsageError:  # the rows of other versions may be of other types
        own, whole = _read(file, _OWN), None
    rows = np.flatnonzero(pc.equal(own[VERSION], version).fill_null(False))
    versions = set(pc.unique(own[VERSION]).drop_null().to_pylist())
    left_out = 0
    try:
        chosen = whole.take(rows) if whole is not None else _read(file, types, only=rows)
    except UsageError:
        # The model checks little of a column that it ignores: a client may send a list in a tf.Example.
        fitting = _fitting(file, types, rows)
        if not len(fitting):
            raise
        left_out, rows = len(rows) - len(fitting), fitting
        chosen = _read(file, types, only=rows)
    # Nothing is left of a file that was removed meanwhile.
    return chosen, rows[: len(chosen)], versions, left_out


def _fitting(
    file: Path, types: Mapping[str, pa.DataType], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return those of a file's rows whose values have the columns' types; none of a Parquet file's."""

    def fits(line: bytes) -> bool:
        row = orjson.loads(line)
        return all(type(row.get(name)) in (*_PYTHON_TYPES[each], type(None)) for name, each in types.items())

    found: list[int] = []
    if file.suffix != PARQUET:
        with contextlib.suppress(OSError, ValueError):  # removed meanwhile, or no JSON
            lines = _lines(file.read_bytes())
            found = [row for row in rows.tolist() if fits(lines[row])]
    return np.array(found, np.int64)


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line.strip()]


def _read(
    file: Path, types: Mapping[str, pa.DataType], *, only: npt.NDArray[np.int64] | None = None
) -> pa.Table:
    """Read columns of a file; `only` these rows, so that all others may be of any type."""
    schema = pa.schema(types)
    if only is not None and not len(only):
        return schema.empty_table()
    try:
        if file.suffix == PARQUET:
            # Else a folder COLUMN=VALUE above the file would be a column, beside one of its own of that name.
            # Times of 96 bits, as Spark writes them, and UUIDs are read as Ingest reads them.
            table = pq.read_table(
                file, columns=list(types), partitioning=None, coerce_int96_timestamp_unit="us"
            ).select(list(types))
            table = with_uuids_as_text(table, file)
            return checked((table if only is None else table.take(only)).cast(schema))
        data = file.read_bytes()
        data = data[: data.rfind(b"\n") + 1]
        if not data:
            return schema.empty_table()
        if only is not None:
            lines = _lines(data)
            data = b"".join(lines[row] + b"\n" for row in only)
        return checked(
            pyarrow.json.read_json(
                pa.BufferReader(data),
                read_options=pyarrow.json.ReadOptions(block_size=8 * MOST_LINE_BYTES),
                parse_options=pyarrow.json.ParseOptions(schema, unexpected_field_behavior="ignore"),
            )
        )
    except FileNotFoundError:
        return schema.empty_table()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error


def _times(file: Path, times: Any) -> npt.NDArray[np.int64]:
    try:
        # Other servers write more than three digits of seconds, which the cast refuses.
        found = pc.replace_substring_regex(times, r"(\.\d{3})\d+", r"\1").cast(pa.timestamp("ms", "UTC"))
    except pa.ArrowException as error:
        raise _unreadable(file, error) from error
    if found.null_count:
        raise UsageError(f"{file} has a row without {AT}.")
    at_ms: npt.NDArray[np.int64] = found.cast(pa.int64()).to_numpy()
    if (at_ms < 0).any():
        raise UsageError(f"{file} has a row whose {AT} is before 1970.", hint="remove or fix the file")
    return at_ms


def _unreadable(file: Path, error: Exception) -> UsageError:
    return unreadable_log(file, " ".join(str(error).split())[:300])
