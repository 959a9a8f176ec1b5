"""Parses one line of JSON Lines: the object, or why it is not a row."""

import json
import re
from collections import Counter
from collections.abc import Collection
from typing import Any

import orjson

from slipway.components.ingest.blocks import BEYOND_64_BITS

INT64 = range(-(2**63), 2**63)
# Of longer whole numbers the parser makes doubles, without a word.
_LEAST_UNSURE = 2.0**63
_LONG = object()
_KEY_END = re.compile(rb'"[ \t\r\n]*:')

Row = dict[str, Any]


def parse_object(raw: bytes, fractions: Collection[str] = ()) -> tuple[Row, str, str]:
    """The object, or why there is none: a reason, and what was found.

    Args:
        raw: the line, without its end.
        fractions: the keys whose values are fractions, however many bits their whole numbers have.
    """
    try:
        row = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return {}, _why(str(error)), str(error)[:120]
    if not isinstance(row, dict):
        return {}, "not a JSON object", type(row).__name__
    is_unsure = is_wide = False
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
    if raw.count(b":") > len(row) and (twice := _key_twice(raw, len(row))):
        return {}, "a key twice", twice
    if is_unsure and (key := _key_of_long_number(raw, fractions)) is not None:
        return {}, BEYOND_64_BITS, f"key {key!r}"
    if is_wide:  # Arrow makes no fraction of them
        row |= {key: _as_fractions(row[key]) for key in row.keys() & set(fractions)}
    return row, "", ""


def _as_fractions(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_fractions(each) for each in value]
    return float(value) if type(value) is int and value not in INT64 else value


def as_written(raw: bytes) -> Row:
    """The object of a line that is one, its numbers as texts: `1.50` is no 1.5."""
    row: Row = json.loads(raw, parse_int=str, parse_float=str)
    return row


def _why(error: str) -> str:
    if "utf-8" in error.lower():
        return "not valid text"
    return "a number beyond 64 bits" if "infinity" in error else "broken JSON"


def _key_twice(raw: bytes, keys: int) -> str:
    """The first key that an object has twice, in words, else "": the parser keeps the last of its values.

    Args:
        raw: the line.
        keys: different keys that the object has.
    """
    if len(_KEY_END.findall(raw)) == keys:
        return ""  # the other colons stand within texts
    try:
        pairs = json.loads(raw, object_pairs_hook=list, parse_int=str, parse_float=str)
    except RecursionError:  # of what is nested in a value that a later one has replaced
        return "of nested values"
    names = Counter(key for key, _ in pairs)
    return next((f"key {key!r}" for key, count in names.items() if count > 1), "")


def _key_of_long_number(raw: bytes, fractions: Collection[str]) -> str | None:
    """The first key, but for `fractions`, with a whole number that is written out and beyond 64 bits."""
    row = json.loads(raw, parse_int=_long)
    for key, value in row.items():
        if key not in fractions and any(
            item is _LONG for item in (value if isinstance(value, list) else [value])
        ):
            return str(key)
    return None


def _long(text: str) -> object:
    # Python refuses to read numbers of some thousand digits.
    is_long = len(text) > len(str(INT64.start)) or int(text) not in INT64
    return _LONG if is_long else None
