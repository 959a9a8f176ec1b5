"""Reads JSON Lines into typed columns. A line that is not an object, or a nested one, is rejected.

A column's type can hold the values of all lines and files; a key that a line lacks is a missing value.
"""

import math
import shlex
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from slipway.components.ingest.blocks import LIST_WITH_GAP, Block, FileError, InputFile, Place, Reject
from slipway.components.ingest.column_types import INT64, Columns, ColumnType
from slipway.components.ingest.compression import Stream
from slipway.components.ingest.csv_record_blocks import BYTE_ORDER_MARK, Records, scan_records
from slipway.components.ingest.json_objects import Row, as_written, parse_object
from slipway.components.ingest.missing_values import MissingValues
from slipway.components.ingest.notations import Notations
from slipway.components.ingest.options import Options
from slipway.components.ingest.quarantine import describe
from slipway.components.ingest.source_limits import TOO_LONG, SourceLimits

_TYPES: dict[type, ColumnType] = {
    bool: ColumnType.INT,
    int: ColumnType.INT,
    float: ColumnType.FLOAT,
    str: ColumnType.TEXT,
    type(None): ColumnType.UNKNOWN,
}
_MOST_CELLS = 2_000_000
_FIRST_LINES = 100
_WRONG_TYPE = {
    ColumnType.UNKNOWN: "no value expected",
    ColumnType.INT: "not a whole number",
    ColumnType.FLOAT: "not a number",
}
_FLAT = 'write each value under its own key: {"address_city": ...}, not {"address": {"city": ...}}'


def infer(file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:
    """Return the keys of all objects of a file, by first appearance, with types that hold their values.

    Raises:
        FileError: no line is an object, or no object has a chosen column.
    """
    kinds, first = _kinds(file, options)
    if file.part:
        if file.part.begin:  # the file as a whole is judged with its first part
            return {name: known.get(name, kind) for name, kind in kinds.items()}
        if not kinds or not kinds.keys() >= set(options.columns):
            kinds, first = _kinds(replace(file, part=None), options)
    if not kinds:
        raise _no_row(file, first)
    return {name: known.get(name, kinds[name]) for name in options.chosen(tuple(kinds), file=file.name)}


def _kinds(file: InputFile, options: Options) -> tuple[dict[str, ColumnType], Reject | None]:
    """Return the chosen keys of a file or its part with their types, and the first line that is no row."""
    kinds: dict[str, ColumnType] = {}
    first: Reject | None = None
    wanted = {*options.columns, options.split_column} if options.columns else None
    for _, rows, rejects in _read_lines(file, options):
        first = first or next(iter(rejects), None)
        for _, _, row in rows:
            for key, value in row.items():
                if wanted is not None and key not in wanted:
                    continue
                kind = kinds.get(key, ColumnType.UNKNOWN)
                if kind != ColumnType.TEXT:
                    kind = max(kind, _type_of(value))
                kinds[key] = kind
            if len(kinds) > options.limits.columns:
                raise _too_many_keys(file, row, options.limits)
    return kinds, first


def first_keys(file: InputFile, options: Options, *, wanted: Collection[str] = ()) -> tuple[str, ...]:
    """Return the keys, by first appearance, of the first block of a file that holds an object.

    Args:
        wanted: keys for which further blocks are read, to the end of the file if one is nowhere.

    Raises:
        FileError: the file cannot be read, or no line is an object.
    """
    first: Reject | None = None
    keys: dict[str, None] = {}
    for _, rows, rejects in _read_lines(file, options):
        first = first or next(iter(rejects), None)
        keys |= dict.fromkeys(key for _, _, row in rows for key in row)
        if keys and keys.keys() >= set(wanted):
            break
    if not keys:
        raise _no_row(file, first)
    return tuple(keys)


def boolean_keys(file: InputFile, options: Options) -> frozenset[str]:
    """Return the keys with true or false, or a list with one, of all objects of a file.

    Raises:
        FileError: the file cannot be read.
    """
    found: set[str] = set()
    for records in scan_lines(file, options):
        for start, end in zip(records.starts.tolist(), records.ends.tolist(), strict=True):
            line = line_of(records, start, end)
            if b"true" not in line and b"false" not in line:
                continue
            row, reason, _ = parse_object(line)
            if not reason:
                found.update(key for key, value in row.items() if _holds_boolean(value))
    return frozenset(found)


def scan_lines(file: InputFile, options: Options) -> Iterator[Records]:
    """Return the lines of a file or its part, in blocks."""
    begin, end, line = (file.part.begin, file.part.end, file.part.line) if file.part else (0, None, 1)
    stream = Stream(file, encoding=options.encoding, begin=begin, end=end)
    return scan_records(
        stream.read,
        delimiter=",",
        quote=None,
        max_record_bytes=options.limits.row_bytes,
        block_bytes=options.block_bytes,
        offset=begin,
        line=line,
    )


def line_of(records: Records, start: int, end: int) -> bytes:
    """Return a line without the byte order mark that a file may begin with."""
    line = records.data[start:end]
    return line if records.offset + start else line.removeprefix(BYTE_ORDER_MARK)


def read(file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:
    """Yield the objects of a file as rows."""
    # However short a line is, its row has a cell for each column.
    most_rows = max(_MOST_CELLS // max(len(columns), 1), 1)
    for records, rows, rejects in _read_lines(file, options, most_rows=most_rows):
        fitting: list[tuple[int, int, Row]] = []
        for start, end, row in rows:
            found = ((name, _misfit(value, columns[name])) for name, value in row.items() if name in columns)
            column, reason = next(((name, why) for name, why in found if why), ("", ""))
            if not reason:
                fitting.append((start, end, row))
            else:
                place = _place(records, start, end)
                rejects.append(Reject(reason, place, column, repr(row[column])[:80]))
        _write_out(records, fitting, columns)
        yield Block(
            rows=len(fitting),
            columns=_columns_of([row for _, _, row in fitting], columns),
            rejects=rejects,
            find=_finder(records, fitting),
            position=records.offset + len(records.data),
        )


def _columns_of(rows: list[Row], columns: Columns) -> dict[str, pa.Array]:
    """Return the values of each column; a column that no row has is built without going through the rows."""
    there = set().union(*rows)
    return {
        name: _array([row.get(name) for row in rows], kind)
        if name in there
        else _items([None] * len(rows), kind)
        for name, kind in columns.items()
    }


def _too_many_keys(file: InputFile, row: Row, limits: SourceLimits) -> FileError:
    return FileError(
        f"{file.name} has {limits.exceeded('columns')} different keys, such as {next(reversed(row))!r}",
        hint='a key is a column, so write what varies as a value: {"id": "a7", "value": 1}, not {"a7": 1}; '
        "or name the keys you need in data.columns, or raise data.limits.columns",
    )


def _no_row(file: InputFile, first: Reject | None) -> FileError:
    if first is None or first.reason in ("broken JSON", "not a JSON object"):
        return FileError(
            f"{file.name} holds no JSON object", hint='each line must be one object: {"name": value, ...}'
        )
    return FileError(
        f"{file.name} holds no object that can be read as a row; the first: {describe(file.name, first)}",
        hint=_FLAT if first.reason == "nested JSON" else "correct these lines",
    )


def _check_begin(file: InputFile, raw: bytes, records: Records) -> None:
    """Reject a JSON file that does not have one object per line, judging by its first lines.

    If most of them are objects, the first one is a broken row, as any other.

    Raises:
        FileError: the file is an array or its objects span lines; names the command that converts it.
    """
    begin = raw.strip()
    if begin[:1] not in (b"[", b"{"):
        return
    try:
        value = orjson.loads(begin)
    except orjson.JSONDecodeError:
        is_array, is_spread = begin[:1] == b"[", begin == b"{"
    else:
        is_array, is_spread = isinstance(value, list) and any(isinstance(each, dict) for each in value), False
    if (is_array or is_spread) and not _are_objects(records):
        what = "one JSON array" if is_array else "JSON objects over several lines each"
        each = "'.[]'" if is_array else "."
        raise FileError(
            f"{file.name} holds {what}; JSON Lines need one object per line",
            hint=f"jq -c {each} {shlex.quote(file.name)} > rows.jsonl",
        )


def _are_objects(records: Records) -> bool:
    """Return True if most of the first lines are objects."""
    lines = [
        records.data[start:end]
        for start, end in zip(records.starts[:_FIRST_LINES], records.ends[:_FIRST_LINES], strict=True)
    ]
    return 2 * sum(not parse_object(line)[1] for line in lines) > len(lines)


def _write_out(records: Records, rows: list[tuple[int, int, Row]], columns: Columns) -> None:
    """Replace numbers in text columns with the text that they are written as."""
    texts = {name for name, kind in columns.items() if kind == ColumnType.TEXT}
    for start, end, row in rows:
        if numbers := [name for name, value in row.items() if _holds_number(value) and name in texts]:
            written = as_written(records.data[start:end].removeprefix(BYTE_ORDER_MARK))
            row |= {name: written[name] for name in numbers}


def _holds_number(value: Any) -> bool:
    return any(type(each) in (int, float) for each in (value if isinstance(value, list) else (value,)))


def _holds_boolean(value: Any) -> bool:
    return any(type(each) is bool for each in (value if isinstance(value, list) else (value,)))


def _finder(records: Records, rows: list[tuple[int, int, Row]]) -> Callable[[int], Place]:
    return lambda row: _place(records, *rows[row][:2])


def _read_lines(
    file: InputFile, options: Options, *, most_rows: int = _MOST_CELLS
) -> Iterator[tuple[Records, list[tuple[int, int, Row]], list[Reject]]]:
    notations, missing = Notations.of(options), MissingValues.of(options)
    # Only columns declared as float: in a column that is guessed to be float, a long number may be an id.
    fractions = {name for name, kind in options.types.items() if kind == "float"}
    for records in (part for block in scan_lines(file, options) for part in block.parts(most_rows)):
        rows: list[tuple[int, int, Row]] = []
        rejects: list[Reject] = []
        for start, end in zip(records.starts.tolist(), records.ends.tolist(), strict=True):
            raw = line_of(records, start, end)
            if records.offset + start == 0:
                _check_begin(file, raw, records)
            if not raw.strip():
                continue
            reason, detail = TOO_LONG, options.limits.exceeded("row_bytes")
            row: Any = None
            if not records.kept_bytes and len(raw) <= options.limits.row_bytes:
                row, reason, detail = parse_object(raw, fractions)
            if reason:
                rejects.append(Reject(reason, _place(records, start, end), detail=detail))
            else:
                rows.append((start, end, row))
        found = [row for _, _, row in rows]
        missing.remove_from(found)
        _rewrite(found, notations)
        yield records, rows, rejects


def _rewrite(rows: list[Row], notations: Notations) -> None:
    """Replace texts in a column's number or date format with numbers or plain dates."""
    for column in (*notations.numbers, *notations.dates):
        # A date may be a whole number, such as 20240131.
        kinds = (str, int) if column in notations.dates else (str,)
        holders = [row for row in rows if type(row.get(column)) in kinds]
        texts = pa.array([str(row[column]).encode() for row in holders], pa.large_binary())
        for row, text in zip(holders, notations.plain_bytes(column, texts).to_pylist(), strict=True):
            row[column] = text if text is None else _number_or_text(text, column in notations.numbers)


def _number_or_text(text: bytes, is_number: bool) -> float | str:
    if not is_number:
        return text.decode()
    try:
        number = float(text)
    except ValueError:
        return text.decode()
    if math.isinf(number) and b"inf" not in text.lower():
        # Beyond a double. The greatest one is rejected as beyond 32 bits; infinity would be a value.
        return math.copysign(sys.float_info.max, number)
    # Python's int() rejects several thousand digits; so many are beyond a double, or zeros before a number.
    is_short = len(text) <= sys.int_info.str_digits_check_threshold
    is_whole = is_short and not text.strip(b"+-_0123456789") and int(text) in INT64
    return int(text) if is_whole else number


def _place(records: Records, start: int, end: int) -> Place:
    return Place(records.line_of(start), records.offset + start, records.data[start:end])


def _type_of(value: Any) -> ColumnType:
    if isinstance(value, list):
        return max((_TYPES[type(item)] for item in value), default=ColumnType.UNKNOWN)
    return _TYPES[type(value)]


def _misfit(value: Any, kind: ColumnType) -> str:
    """Return why a value does not fit the column's type, or ""; a number can be text, but not vice versa."""
    if isinstance(value, list):
        # An example cannot hold a missing value in a list, which would become shorter.
        if None in value:
            return LIST_WITH_GAP
        return next((why for item in value if (why := _misfit(item, kind))), "")
    if value is None or kind == ColumnType.TEXT:
        return ""
    if kind == ColumnType.INT and isinstance(value, float):
        fits = value.is_integer() and int(value) in INT64
    else:
        fits = _TYPES[type(value)] <= kind
    return "" if fits else _WRONG_TYPE[kind]


def _array(values: list[Any], kind: ColumnType) -> pa.Array:
    """Return the values of a column, all as lists if any value is a list."""
    if not any(isinstance(value, list) for value in values):
        return _items(values, kind)
    lists = [each if isinstance(each, list) else [] if each is None else [each] for each in values]
    offsets = np.cumsum([0, *map(len, lists)])
    flat = [value for each in lists for value in each]
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), _items(flat, kind))


def _items(values: list[Any], kind: ColumnType) -> pa.Array:
    if kind == ColumnType.UNKNOWN:
        return pa.nulls(len(values))
    if kind == ColumnType.TEXT:
        return pa.array([_text(value) for value in values], pa.large_binary())
    # Whole numbers stay int64, even if the column's type is FLOAT: a double may not hold them exactly.
    is_whole = kind == ColumnType.INT or float not in set(map(type, values))
    convert = int if is_whole else float
    arrow = pa.int64() if is_whole else pa.float64()
    return pa.array([None if value is None else convert(value) for value in values], arrow)


def _text(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else orjson.dumps(value)
