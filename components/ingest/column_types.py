"""Infers column types by the rules of TFX's CSV decoder, merges them over files, and applies them.

Arrow's casts are tried on whole columns first; Python's rules decide only where a cast fails.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.string_buffers import any_with_zero_before, offsets

Mask = npt.NDArray[np.bool_]

INT64 = range(-(2**63), 2**63)
# 18 digits always fit into 64 bits; longer texts are checked one by one.
_SAFE_DIGITS = 18
_DIGITS = b"0123456789"
_WHOLE = r"^[+-]?[0-9]+$"


class ColumnType(IntEnum):
    """The type of a column's values; the greater of two types can hold the values of both."""

    UNKNOWN = 0  # no value at all
    INT = 1
    FLOAT = 2
    TEXT = 3


Columns = Mapping[str, ColumnType]

_ARROW = {
    ColumnType.UNKNOWN: pa.null(),
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float64(),
    ColumnType.TEXT: pa.large_binary(),
}


def merge(first: Columns, second: Columns) -> dict[str, ColumnType]:
    """Return the columns of both, those of the first in front; a column in both gets the greater type."""
    both = {**first, **second}
    return {name: max(first.get(name, kind), kind) for name, kind in both.items()}


def infer_type(cells: pa.Array, at_least: ColumnType = ColumnType.UNKNOWN) -> ColumnType:
    """Return the narrowest type, from `at_least` on, that holds all cells of a column.

    A column of whole numbers is text if any of them has a leading zero ("007").

    Args:
        cells: Arrow strings, UTF-8; the empty string is a missing value.
        at_least: the type inferred from other parts of the column.
    """
    if at_least == ColumnType.TEXT:
        return at_least
    texts = _without_empty(cells)
    if texts.null_count == len(texts):
        return at_least
    if at_least <= ColumnType.INT and _plain_ints(texts) is not None:
        return ColumnType.INT
    if _plain_floats(texts) is not None:
        return ColumnType.FLOAT
    for value in _unique_bytes(texts):
        at_least = max(at_least, _type_of(value))
        if at_least == ColumnType.TEXT:
            break
    return at_least


def parse(cells: pa.Array, kind: ColumnType) -> tuple[pa.Array, Mask]:
    """Parse the cells as values of a type.

    Args:
        cells: Arrow strings, UTF-8; the empty string is a missing value.

    Returns:
        The values as int64, float64 or large_binary (UNKNOWN: null), null where missing or wrong; and a mask
        of the cells that do not hold a value of the type.
    """
    right: Mask = np.zeros(len(cells), dtype=np.bool_)
    texts = _without_empty(cells)
    if kind == ColumnType.UNKNOWN:
        return pa.nulls(len(cells)), np.asarray(texts.is_valid(), dtype=np.bool_)
    if kind == ColumnType.TEXT:
        return texts.cast(pa.binary() if pa.types.is_string(texts.type) else pa.large_binary()).cast(
            pa.large_binary()
        ), right
    cast = _cast_ints if kind == ColumnType.INT else _cast_floats
    if (values := cast(texts)) is not None:
        return values, right
    return _parse_one_by_one(texts, kind)


def parse_plain(cells: pa.Array, guess: ColumnType) -> pa.Array | None:
    """Parse as `parse_guessed`, but also return None if a number has a +, leading zeros, _ or spaces."""
    plain = {ColumnType.INT: _plain_ints, ColumnType.FLOAT: _plain_floats}.get(guess)
    return plain(_without_empty(cells)) if plain is not None else None


def parse_guessed(cells: pa.Array, guess: ColumnType) -> pa.Array | None:
    """Parse the cells as values of a guessed type; return None if `infer_type` gives another type for them.

    Args:
        cells: as for `parse`.
        guess: the type that `infer_type` gave for other cells of the column.
    """
    if (values := parse_plain(cells, guess)) is not None:
        return values
    return parse(cells, guess)[0] if infer_type(cells, guess) == guess else None


def as_type(values: pa.Array, kind: ColumnType) -> tuple[pa.Array, Mask]:
    """Convert typed values, or lists of them, to another type; lists keep their lengths.

    Args:
        values: int64, uint64, uint8, float64, decimals, large_binary or null, or a large_list of these.

    Returns:
        Values and mask, as `parse` returns them. Numbers are formatted as text, text is parsed like a cell,
        and a list with one wrong value is wrong.
    """
    good: Mask = np.zeros(len(values), dtype=np.bool_)
    if pa.types.is_large_list(values.type):
        flat, bad = as_type(values.flatten(), kind)
        counts = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat)
        return lists, _any_in_row(bad, offsets)
    wanted = _ARROW[kind]
    if values.type == wanted:
        return values, good
    if pa.types.is_null(values.type):
        return values.cast(wanted), good
    if kind == ColumnType.UNKNOWN:
        return pa.nulls(len(values)), np.asarray(values.is_valid(), dtype=np.bool_)
    if kind == ColumnType.TEXT:
        return values.cast(pa.string()).cast(pa.binary()).cast(wanted), good
    if kind == ColumnType.INT and values.type == pa.uint8():
        return values, good  # uint8 already holds the values
    is_exact = pa.types.is_integer(values.type) or pa.types.is_decimal(values.type)
    if kind == ColumnType.FLOAT and is_exact:
        return values.cast(wanted, safe=False), good
    if is_exact:
        return _whole_exactly(values)
    if pa.types.is_large_binary(values.type):
        parsed, bad = _parse_one_by_one(values, kind)
        return parsed, bad
    return _whole(values)


def type_of_arrow(kind: pa.DataType) -> ColumnType | None:
    """Return the column type of an Arrow type or of an Arrow list's items; None if there is none."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = kind.value_type
        return None if pa.types.is_nested(inner) else type_of_arrow(inner)
    if pa.types.is_dictionary(kind):
        return type_of_arrow(kind.value_type)
    rules: tuple[tuple[Callable[[pa.DataType], bool], ColumnType], ...] = (
        (pa.types.is_null, ColumnType.UNKNOWN),
        (pa.types.is_boolean, ColumnType.INT),
        (pa.types.is_integer, ColumnType.INT),
        (pa.types.is_floating, ColumnType.FLOAT),
        (lambda each: pa.types.is_decimal(each) and each.scale <= 0, ColumnType.INT),
        (pa.types.is_decimal, ColumnType.FLOAT),
        (pa.types.is_string, ColumnType.TEXT),
        (pa.types.is_large_string, ColumnType.TEXT),
        (pa.types.is_binary, ColumnType.TEXT),
        (pa.types.is_large_binary, ColumnType.TEXT),
        (pa.types.is_fixed_size_binary, ColumnType.TEXT),
        (pa.types.is_duration, ColumnType.INT),
        (pa.types.is_temporal, ColumnType.TEXT),
    )
    return next((column for rule, column in rules if rule(kind)), None)


def _without_empty(cells: pa.Array) -> pa.Array:
    """Return the cells with nulls for empty ones, without copying text."""
    filled = np.diff(offsets(cells)) > 0
    if filled.all():
        return cells
    bits = np.packbits(filled, bitorder="little")
    buffers = [pa.py_buffer(bits), pa.py_buffer(offsets(cells)), cells.buffers()[2]]
    return pa.Array.from_buffers(cells.type, len(cells), buffers)


def _unique_bytes(values: pa.Array) -> list[bytes]:
    return [v.encode() if isinstance(v, str) else v for v in pc.unique(values).to_pylist() if v is not None]


def _type_of(value: bytes) -> ColumnType:
    try:
        number = int(value)
    except ValueError:
        try:
            float(value)
        except ValueError:
            return ColumnType.TEXT
        return ColumnType.FLOAT
    digits = value.strip().lstrip(b"+-")
    has_leading_zero = len(digits) > 1 and digits.startswith(b"0")
    return ColumnType.INT if number in INT64 and not has_leading_zero else ColumnType.TEXT


def _plain_ints(texts: pa.Array) -> pa.Array | None:
    """Parse whole numbers of few digits without leading zeros; None if any cell is something else."""
    longest = np.diff(offsets(texts)).max(initial=0)
    return None if longest > _SAFE_DIGITS or any_with_zero_before(_DIGITS, texts) else _cast_ints(texts)


def _plain_floats(texts: pa.Array) -> pa.Array | None:
    """Parse numbers as floats; None if any may be a whole number that Arrow cannot cast to int64."""
    if any_with_zero_before(_DIGITS, texts) or (values := _cast_floats(texts)) is None:
        return None
    if pc.any(pc.starts_with(texts, "+")).as_py():
        return None
    long = texts.filter(pc.greater(pc.binary_length(texts), _SAFE_DIGITS))
    return None if len(long) and pc.any(pc.match_substring_regex(long, _WHOLE)).as_py() else values


def _cast_ints(texts: pa.Array) -> pa.Array | None:
    """Cast to int64 if Arrow's rules agree with Python's on all texts, else return None."""
    try:
        cast = pc.cast(texts, pa.int64())
    except pa.ArrowInvalid:
        return None
    # Arrow reads 0x1F as 31.
    return None if any_with_zero_before(b"xX", texts) else cast


def _cast_floats(values: pa.Array) -> pa.Array | None:
    """Cast to float64 if Arrow's rules agree with Python's on all texts, else return None."""
    try:
        cast = pc.cast(values, pa.float64())
    except pa.ArrowInvalid:
        return None
    # Arrow reads nan(abc), as C does.
    if pc.any(pc.is_nan(cast)).as_py() and pc.any(pc.match_substring(values, "(")).as_py():
        return None
    return cast


def _parse_one_by_one(texts: pa.Array, kind: ColumnType) -> tuple[pa.Array, Mask]:
    encoded = texts.dictionary_encode()
    values: list[Any] = []
    for text in encoded.dictionary.to_pylist():
        values.append(_number(text.encode() if isinstance(text, str) else text, kind))
    parsed = pa.array(values, _ARROW[kind]).take(encoded.indices)
    bad = pc.and_(pc.is_null(parsed), pc.is_valid(texts))
    return parsed, np.asarray(bad, dtype=np.bool_)


def _number(text: bytes, kind: ColumnType) -> int | float | None:
    try:
        if kind == ColumnType.FLOAT:
            return float(text)
        number = int(text)
    except ValueError:
        return None
    return number if number in INT64 else None


def _whole(values: pa.Array) -> tuple[pa.Array, Mask]:
    """Convert floats to int64; a float with a fraction is wrong."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    fits = np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**63)
    whole = np.where(fits, numbers, 0).astype(np.int64)
    missing = np.asarray(values.is_null(), dtype=np.bool_)
    return pa.array(whole, mask=missing | ~fits), ~fits & ~missing


def _whole_exactly(values: pa.Array) -> tuple[pa.Array, Mask]:
    """Convert unsigned numbers and decimals to int64; one with a fraction or beyond 64 bits is wrong."""
    try:
        return values.cast(pa.int64()), np.zeros(len(values), dtype=np.bool_)
    except pa.ArrowInvalid:
        numbers = values.to_pylist()
    fits = [
        each if each is not None and each == int(each) and int(each) in INT64 else None for each in numbers
    ]
    wrong = [found is None and each is not None for found, each in zip(fits, numbers, strict=True)]
    return pa.array([None if each is None else int(each) for each in fits], pa.int64()), np.array(wrong)


def _any_in_row(bad: Mask, offsets: npt.NDArray[Any]) -> Mask:
    before = np.concatenate([[0], np.cumsum(bad)])
    return np.asarray(before[offsets[1:]] > before[offsets[:-1]], dtype=np.bool_)
