"""Parses a line of JSON Lines to a row, or says why it is not one.

A value may be a scalar or a list of scalars: any deeper nesting is rejected. The parser, orjson, accepts at
most 1,024 levels; a line with more counts as broken JSON.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection
from typing import Any

import orjson

from slipway.components.ingest.blocks import BEYOND_64_BITS
from slipway.components.ingest.column_types import INT64

NO_NUMBER = "NaN or Infinity, which JSON does not have"
"""The reason of a line that Python's json has written of a number that is none: no other program reads it."""
# The parser silently converts whole numbers beyond 64 bits to doubles.
_LEAST_UNSURE = 2.0**63
_LONG = object()
# Of a number that may be too small for a double, which the parser silently makes 0.
_ZEROS = b"0" * 300
_TINY = re.compile(rb"[eE]-[0-9]{3}|0{300}")
_KEY_END = re.compile(rb'"[ \t\r\n]*:')

Row = dict[str, object]


def parse_object(raw: bytes, fractions: Collection[str] = ()) -> tuple[Row, str, str]:
    """Return the object of a line, a reason and a detail; if there is a reason, the line is not a row.

    Args:
        raw: the line, without its line ending.
        fractions: the keys whose values are floats, so that whole numbers may have more than 64 bits.
    """
    try:
        row = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if (b"NaN" in raw or b"Infinity" in raw) and _is_pythons(raw):
            return {}, NO_NUMBER, "write null for a missing value"
        return {}, _why(str(error)), str(error)[:120]
    if not isinstance(row, dict):
        return {}, "not a JSON object", type(row).__name__
    is_unsure = is_wide = is_zero = False
    for key, value in row.items():
        if not key.strip():
            return {}, "a key without a name", f"key {key!r}"
        for item in value if type(value) is list else (value,):
            kind = type(item)
            if kind is dict or kind is list:
                return {}, "nested JSON", f"key {key!r}"
            if kind is int and item not in INT64:
                if key not in fractions:
                    return {}, BEYOND_64_BITS, f"key {key!r}"
                is_wide = True
            is_unsure |= kind is float and not -_LEAST_UNSURE < item < _LEAST_UNSURE
            is_zero |= kind is float and item == 0
    if raw.count(b":") > len(row) and (twice := _key_twice(raw, len(row))):
        return {}, "a key twice", twice
    if is_unsure and (key := _key_of_long_number(raw, fractions)) is not None:
        return {}, BEYOND_64_BITS, f"key {key!r}"
    if is_zero and (b"e-" in raw or b"E-" in raw or _ZEROS in raw) and _TINY.search(raw):  # `in` is faster
        row, is_wide = json.loads(raw, parse_float=_nonzero), True  # it keeps whole numbers of any length
    if is_wide:  # Arrow does not convert them to floats
        row |= {key: _as_fractions(row[key]) for key in row.keys() & set(fractions)}
    return row, "", ""


def _nonzero(text: str) -> float:
    """Return the number, or instead of 0 the least one of its sign, which is counted as rounded to 0."""
    number = float(text)
    is_rounded = number == 0 and re.search("[1-9]", text.lower().partition("e")[0])
    return math.copysign(math.ulp(0.0), number) if is_rounded else number


def _as_fractions(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_fractions(each) for each in value]
    return float(value) if type(value) is int and value not in INT64 else value


def as_written(raw: bytes) -> Row:
    """Return the object of a valid line with its numbers as written: `1.50` stays "1.50"."""
    row: Row = json.loads(raw, parse_int=str, parse_float=str)
    return row


def _is_pythons(raw: bytes) -> bool:
    try:
        json.loads(raw, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def _why(error: str) -> str:
    if "utf-8" in error.lower():
        return "not valid text"
    return "a number beyond 64 bits" if "infinity" in error else "broken JSON"


def _key_twice(raw: bytes, keys: int) -> str:
    """Name the first key that an object has twice, else return "": the parser keeps only its last value.

    Args:
        keys: the number of distinct keys of the object.
    """
    if len(_KEY_END.findall(raw)) == keys:
        return ""  # the other colons are inside strings
    try:
        pairs = json.loads(raw, object_pairs_hook=list, parse_int=str, parse_float=str)
    except RecursionError:  # deep nesting in a value that a later one with the same key has replaced
        return "of nested values"
    names = Counter(key for key, _ in pairs)
    return next((f"key {key!r}" for key, count in names.items() if count > 1), "")


def _key_of_long_number(raw: bytes, fractions: Collection[str]) -> str | None:
    """Return the first key, except `fractions`, with a whole number, written as such, beyond 64 bits."""
    row = json.loads(raw, parse_int=_long)
    for key, value in row.items():
        if key not in fractions and any(
            item is _LONG for item in (value if isinstance(value, list) else [value])
        ):
            return str(key)
    return None


def _long(text: str) -> object:
    # Python's int() rejects numbers of several thousand digits.
    is_long = len(text) > len(str(INT64.start)) or int(text) not in INT64
    return _LONG if is_long else None
