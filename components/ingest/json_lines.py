"""JSON Lines to blocks of typed columns: an object a line; what is no object, or holds one, is rejected.

A column's type holds the values of all lines and files; a key that a line lacks is a missing value there.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from components.ingest.blocks import Block, FileError, InputFile, Place, Reject
from components.ingest.column_types import Columns, ColumnType
from components.ingest.compression import open_stream
from components.ingest.csv_records import Records, scan_records
from components.ingest.limits import TOO_LONG
from components.ingest.options import Options
from components.ingest.written_values import WrittenValues

_INT64 = range(-(2**63), 2**63)
_TYPES: dict[type, ColumnType] = {
    bool: ColumnType.INT,
    int: ColumnType.INT,
    float: ColumnType.FLOAT,
    str: ColumnType.TEXT,
    type(None): ColumnType.UNKNOWN,
}

_Row = dict[str, Any]


def infer(file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:
    """The keys of all objects of a file, by first appearance, with the types that hold their values.

    Raises:
        FileError: no line is an object, or a chosen column is in none.
    """
    kinds: dict[str, ColumnType] = {}
    for _, rows, _ in _read_lines(file, options):
        for _, _, row in rows:
            for key, value in row.items():
                kind = kinds.get(key, ColumnType.UNKNOWN)
                if kind != ColumnType.TEXT:
                    kind = max(kind, _type_of(value))
                kinds[key] = kind
    if not kinds:
        raise _no_object(file)
    return {name: known.get(name, kinds[name]) for name in options.chosen(tuple(kinds), file=file.name)}


def first_keys(file: InputFile, options: Options) -> tuple[str, ...]:
    """The keys of the objects in the first block of a file that holds one, by first appearance.

    Raises:
        FileError: the file cannot be read, or no line is an object.
    """
    for _, rows, _ in _read_lines(file, options):
        if keys := tuple(dict.fromkeys(key for _, _, row in rows for key in row)):
            return keys
    raise _no_object(file)


def read(file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:
    """The objects of a file as rows."""
    for records, rows, rejects in _read_lines(file, options):
        fitting: list[tuple[int, int, _Row]] = []
        for start, end, row in rows:
            wrong = next((name for name, kind in columns.items() if not _fits(row.get(name), kind)), None)
            if wrong is None:
                fitting.append((start, end, row))
            else:
                reason = "not a number" if columns[wrong] == ColumnType.FLOAT else "not a whole number"
                place = _place(records, start, end)
                rejects.append(Reject(reason, place, wrong, repr(row[wrong])[:80]))
        yield Block(
            rows=len(fitting),
            columns={
                name: _array([row.get(name) for _, _, row in fitting], kind) for name, kind in columns.items()
            },
            rejects=rejects,
            find=_finder(records, fitting),
            position=records.offset + len(records.data),
        )


def _no_object(file: InputFile) -> FileError:
    return FileError(
        f"{file.name} holds no JSON object", hint='each line must be one object: {"name": value, ...}'
    )


def _finder(records: Records, rows: list[tuple[int, int, _Row]]) -> Callable[[int], Place]:
    return lambda row: _place(records, *rows[row][:2])


def _read_lines(
    file: InputFile, options: Options
) -> Iterator[tuple[Records, list[tuple[int, int, _Row]], list[Reject]]]:
    stream = open_stream(file, encoding=options.encoding)
    written = WrittenValues.of(options)
    blocks = scan_records(
        stream.read,
        delimiter=",",
        quote=None,
        max_record_bytes=options.limits.row_bytes,
        block_bytes=options.block_bytes,
    )
    for records in blocks:
        rows: list[tuple[int, int, _Row]] = []
        rejects: list[Reject] = []
        for start, end in zip(records.starts.tolist(), records.ends.tolist(), strict=True):
            raw = records.data[start:end]
            if records.offset + start == 0:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw.strip():
                continue
            reason, detail = TOO_LONG, options.limits.exceeded("row_bytes")
            row: Any = None
            if not records.kept_bytes:
                row, reason, detail = _parse(raw)
            if reason:
                rejects.append(Reject(reason, _place(records, start, end), detail=detail))
            else:
                rows.append((start, end, row))
        _rewrite([row for _, _, row in rows], written)
        yield records, rows, rejects


def _rewrite(rows: list[_Row], written: WrittenValues) -> None:
    """Texts that are numbers or dates of a format become numbers, or plain dates."""
    for column in (*written.numbers, *written.dates):
        holders = [row for row in rows if isinstance(row.get(column), str)]
        texts = pa.array([row[column].encode() for row in holders], pa.large_binary())
        for row, text in zip(holders, written.plain_bytes(column, texts).to_pylist(), strict=True):
            row[column] = text if text is None else _number_or_text(text, column in written.numbers)


def _number_or_text(text: bytes, is_number: bool) -> float | str:
    for kind in (int, float) if is_number else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text.decode()


def _parse(raw: bytes) -> tuple[Any, str, str]:
    """The object, or why there is none: a reason, and what was found."""
    try:
        row = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        reason = "not valid text" if "utf-8" in str(error).lower() else "broken JSON"
        return None, reason, str(error)[:120]
    if not isinstance(row, dict):
        return None, "not a JSON object", type(row).__name__
    for key, value in row.items():
        items = value if isinstance(value, list) else (value,)
        if any(isinstance(item, dict | list) for item in items):
            return None, "nested JSON", f"key {key!r}"
        if any(isinstance(item, int) and item not in _INT64 for item in items):
            return None, "a whole number beyond 64 bits", f"key {key!r}"
    return row, "", ""


def _place(records: Records, start: int, end: int) -> Place:
    return Place(records.line_of(start), records.offset + start, records.data[start:end])


def _type_of(value: Any) -> ColumnType:
    if isinstance(value, list):
        return max((_TYPES[type(item)] for item in value), default=ColumnType.UNKNOWN)
    return _TYPES[type(value)]


def _fits(value: Any, kind: ColumnType) -> bool:
    """Whether a value can be one of the column's type; a number can be text, but no text a number."""
    if value is None or kind == ColumnType.TEXT:
        return True
    if isinstance(value, list):
        return all(_fits(item, kind) for item in value)
    if kind == ColumnType.INT and isinstance(value, float):
        return value.is_integer() and int(value) in _INT64
    return _TYPES[type(value)] <= kind


def _array(values: list[Any], kind: ColumnType) -> pa.Array:
    """The values of a column; lists if any is one."""
    if not any(isinstance(value, list) for value in values):
        return _items(values, kind)
    # A missing value inside a list has no place in an example: the list is shorter by it.
    lists = [[v for v in (each if isinstance(each, list) else [each]) if v is not None] for each in values]
    offsets = np.cumsum([0, *map(len, lists)])
    flat = [value for each in lists for value in each]
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), _items(flat, kind))


def _items(values: list[Any], kind: ColumnType) -> pa.Array:
    if kind == ColumnType.UNKNOWN:
        return pa.nulls(len(values))
    if kind == ColumnType.TEXT:
        return pa.array([_text(value) for value in values], pa.large_binary())
    convert = int if kind == ColumnType.INT else float
    arrow = pa.int64() if kind == ColumnType.INT else pa.float64()
    return pa.array([None if value is None else convert(value) for value in values], arrow)


def _text(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else orjson.dumps(value)
