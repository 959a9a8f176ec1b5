"""Converts the rows of a block to the columns' types, and rejects rows with other values."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.blocks import BEYOND_64_BITS, Block, FileError, InputFile, Reject
from slipway.components.ingest.column_names import column_names
from slipway.components.ingest.column_notes import ROUNDED, TO_ZERO, ColumnNotes
from slipway.components.ingest.column_types import (
    Columns,
    ColumnType,
    as_type,
    parse,
    parse_guessed,
    parse_plain,
)
from slipway.components.ingest.encoded_images import image_problems
from slipway.components.ingest.example_encoding import ExampleEncoder
from slipway.components.ingest.float32_fit import misfits
from slipway.components.ingest.formats import format_of
from slipway.components.ingest.options import Options, Type
from slipway.components.ingest.source_limits import TOO_LARGE as BEYOND_LIMIT
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.suspect_numbers import odd_forms
from slipway.components.iso_dates import ISO_DATE

_WRONG_TYPE = {ColumnType.INT: "not a whole number", ColumnType.FLOAT: "not a number"}
TOO_LARGE = "a number beyond 32-bit fractions"
NO_DATE = "not a date, as all in training"
_USUAL_LIMITS = SourceLimits()


class GuessError(Exception):
    """A cell does not fit the type that was guessed for its column from earlier ones."""


@dataclass(frozen=True, slots=True)
class ExampleRows:
    """Rows of a file as examples.

    Attributes:
        records: serialised Examples.
        rows: the number of each row in its file, from 0; rejected rows count too.
        rejects: the rows of the same block that were rejected, each with its number.
    """

    records: list[bytes]
    rows: npt.NDArray[np.int64]
    rejects: list[tuple[int, Reject]]


def example_rows(
    file: InputFile,
    options: Options,
    columns: Columns,
    *,
    known: Columns,
    units: Mapping[str, str] = MappingProxyType({}),
    dates: Collection[str] = (),
) -> Iterator[ExampleRows]:
    """Yield the rows of a file as examples, a block at a time, in the order of the file.

    Args:
        file: a file of the format that the options name.
        columns: the name and type of each feature. A column that the file lacks has no values; further
            columns of the file are ignored.
        known: types of such further columns, so that they need not be inferred.
        units: what the durations of columns counted in training, such as `ms`.
        dates: columns of ISO dates; a row with another text there is rejected.

    Raises:
        FileError: the file cannot be read to its end, or holds durations in another unit.
    """
    encoder = ExampleEncoder(columns)
    first = 0
    form = format_of(options)
    floats: dict[str, Type] = {name: "float" for name, kind in columns.items() if kind == ColumnType.FLOAT}
    options = replace(options, types={**floats, **options.types})  # of whole numbers beyond 64 bits, too
    if options.format == "parquet":  # in which further columns may be nested, and so unreadable
        options = replace(options, columns=tuple(columns.keys() & {*column_names(file, options)}))
    there = form.infer(file, options, {**known, **columns})
    if options.format == "jsonl":  # the only format that would reject a row for a column that is ignored
        there = {name: kind for name, kind in there.items() if name in columns}
    for block in form.read(file, options, there):
        _check_units(file, {name: block.units[name] for name in columns if name in block.units}, units)
        typed, wrong = typed_rows(block, columns, limits=options.limits)
        for name in dates:
            if name in columns and name in block.columns and pa.types.is_large_binary(typed[name].type):
                _reject(wrong, block, name, NO_DATE, np.flatnonzero(_undated(typed[name])))
        numbers, apart = row_numbers(block, first)
        good = np.ones(block.rows, dtype=np.bool_)
        good[list(wrong)] = False
        records = block.records if block.records is not None else encoder.encode(typed, block.rows)
        rejects = sorted(
            [*apart, *((int(numbers[row]), reject) for row, reject in wrong.items())],
            key=lambda numbered: numbered[0],
        )
        yield ExampleRows(records.filter(pa.array(good)).to_pylist(), numbers[good], rejects)
        first += block.rows + len(block.rejects)


def _check_units(file: InputFile, found: Mapping[str, str], units: Mapping[str, str]) -> None:
    for name, unit in found.items():
        if unit != units.get(name, unit):
            raise FileError(
                f"{file.name}: column {name!r} holds durations in {unit}, and those that the model was "
                f"trained on were in {units[name]}",
                hint=f"write them in {units[name]}: equal numbers would mean other durations",
            )


def typed_rows(
    block: Block,
    columns: Columns,
    *,
    limits: SourceLimits = _USUAL_LIMITS,
    guessed: Collection[str] = (),
    notes: ColumnNotes | None = None,
) -> tuple[dict[str, pa.Array], dict[int, Reject]]:
    """Return the columns' values, one for each row, and rejects by row, each for the first wrong value.

    Args:
        block: a block of any format; a column that it lacks has no values.
        limits: of the images that a column may hold as bytes.
        guessed: text columns whose type is a guess.
        notes: collects values that are read differently than written.

    Raises:
        GuessError: a guess is wrong.
    """
    typed: dict[str, pa.Array] = {}
    rejects: dict[int, Reject] = {}
    for name, kind in columns.items():
        if name not in block.columns:
            if block.records is None:
                typed[name] = as_type(pa.nulls(block.rows), kind)[0]
            continue
        values = block.columns[name]
        if block.is_text and name in guessed:
            typed[name] = _guessed(name, values, kind, notes)
        else:
            typed[name], bad = parse(values, kind) if block.is_text else as_type(values, kind)
            reason = BEYOND_64_BITS if _is_wide(values.type) else _WRONG_TYPE.get(kind, "no value expected")
            _reject(rejects, block, name, reason, np.flatnonzero(bad))
        if kind == ColumnType.FLOAT:
            _reject(rejects, block, name, TOO_LARGE, _too_large(name, typed[name], values, notes))
        problems = {} if block.has_examined_images else image_problems(typed[name], limits)
        for row, problem in problems.items():
            rejects.setdefault(row, Reject(BEYOND_LIMIT, block.find(row), name, problem))
    return typed, rejects


def _guessed(name: str, cells: pa.Array, kind: ColumnType, notes: ColumnNotes | None) -> pa.Array:
    """Parse a column whose type is a guess, and note unusual notations of numbers."""
    plain = parse_plain(cells, kind)
    found = plain if plain is not None else parse_guessed(cells, kind)
    if found is None:
        raise GuessError(name)
    if notes is not None and kind in _WRONG_TYPE:
        for form, count, first in odd_forms(cells, kind, is_plain=plain is not None):
            notes.add(name, form, count, first)
    return found


def _undated(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the texts, large_binary, that are neither ISO dates nor empty."""
    is_date = pc.match_substring_regex(texts, f"{ISO_DATE}|^$")
    return np.asarray(pc.invert(pc.fill_null(is_date, True)))


def _is_wide(kind: pa.DataType) -> bool:
    """Return True if values are whole numbers of which some do not fit into int64."""
    return bool(pa.types.is_uint64(kind) or (pa.types.is_decimal(kind) and kind.scale <= 0))


def _reject(
    rejects: dict[int, Reject], block: Block, column: str, reason: str, rows: npt.NDArray[np.int64]
) -> None:
    """Reject rows that no earlier column has rejected."""
    for row in rows.tolist():
        value = block.columns[column][row].as_py()
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        cell = repr(text[:80])
        rejects.setdefault(row, Reject(reason, block.find(row), column, cell))


def _too_large(
    name: str, values: pa.Array, source: pa.Array, notes: ColumnNotes | None
) -> npt.NDArray[np.int64]:
    """Return the rows with a number too large for float32; note the numbers that float32 changes."""
    flat, written = values, source
    if pa.types.is_large_list(values.type):
        flat, written = values.flatten(), source.flatten()
    found = misfits(flat, written)
    for what, mask in ((TO_ZERO, found.to_zero), (ROUNDED, found.rounded)):
        if mask is not None and notes is not None:
            rows = np.flatnonzero(mask)
            notes.add(name, what, len(rows), str(written[int(rows[0])].as_py()))
    if found.too_large is None:
        return np.zeros(0, dtype=np.int64)
    places = np.flatnonzero(found.too_large)
    if flat is values:
        return places
    return np.unique(np.searchsorted(values.offsets.to_numpy(), places, side="right") - 1)


def row_numbers(block: Block, first: int) -> tuple[npt.NDArray[np.int64], list[tuple[int, Reject]]]:
    """Return the number in the file of each row of a block, and each rejected row with its number.

    Args:
        first: the number of rows before the block, including rejected ones.
    """
    rejects = sorted(block.rejects, key=lambda reject: reject.place.offset)
    # The number of rows before each reject; finding a row's place is expensive, so only a few are looked up.
    before = [_rows_before(block, reject.place.offset) for reject in rejects]
    rows = np.arange(block.rows, dtype=np.int64)
    numbers = first + rows + np.searchsorted(np.array(before, dtype=np.int64), rows, side="right")
    return numbers, [(first + rows_before + i, rejects[i]) for i, rows_before in enumerate(before)]


def _rows_before(block: Block, offset: int) -> int:
    low, high = 0, block.rows
    while low < high:
        middle = (low + high) // 2
        if block.find(middle).offset < offset:
            low = middle + 1
        else:
            high = middle
    return low
