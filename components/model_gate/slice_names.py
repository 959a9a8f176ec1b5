"""The names of slices: `payment_type=Cash`, or of several columns `hour=3, payment_type=Cash`. Pure.

A value, or a column, that holds what stands between the others is quoted, as in `note="x, hour=3"`: otherwise
two slices could have one name, and one of them the other's metrics.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from slipway.components.model_gate.verdict import OVERALL

_BETWEEN = ", "
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PLAIN_VALUE = r'(?!")(?:(?!, ).)*'
_PART = re.compile(rf'(?:^|, )({_QUOTED}|[^="][^=]*)=(?:{_QUOTED}(?=, |$)|{_PLAIN_VALUE})', re.DOTALL)


def slice_name(parts: Iterable[tuple[str, str]]) -> str:
    """Return the name of a slice.

    Args:
        parts: its columns with their values; none: all rows.
    """
    return _BETWEEN.join(f"{_column(column)}={_value(value)}" for column, value in sorted(parts)) or OVERALL


def columns_name(columns: Iterable[str]) -> str:
    """Return the columns of a slice as text, `a, b`."""
    return _BETWEEN.join(map(_column, sorted(columns)))


def slice_columns(name: str) -> str:
    """Return the columns of a slice's name: `a, b` for `a=1, b=x`."""
    return _BETWEEN.join(_PART.findall(name))


def named_slices(name: str, columns: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the names of slices that a user's text may mean, by columns in this order.

    Returns:
        The name that the text is if it was written as by `slice_name`, at most one; and the names that it may
        be if no value in it is quoted, maybe several.
    """
    heads = [f"(?:{re.escape(column)}|{re.escape(_column(column))})" for column in columns]
    exact = _BETWEEN.join(f"{head}=({_QUOTED}|{_PLAIN_VALUE})" for head in heads)
    found = re.fullmatch(exact, name, re.DOTALL)
    values = [_read(each) for each in found.groups()] if found else [None]
    named = {slice_name(zip(columns, values, strict=True))} if None not in values else set()  # type: ignore[arg-type]
    plain = {slice_name(zip(columns, each, strict=True)) for each in _plain_readings(name, heads)}
    return named, plain


def _plain_readings(name: str, heads: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the values of each way to read a text without quotes."""
    if not heads:
        if not name:
            yield ()
        return
    if not (head := re.match(f"{heads[0]}=", name)):
        return
    rest = name[head.end() :]
    if len(heads) == 1:
        yield (rest,)
        return
    for between in re.finditer(_BETWEEN, rest):
        for others in _plain_readings(rest[between.end() :], heads[1:]):
            yield rest[: between.start()], *others


def _read(value: str) -> str | None:
    if not value.startswith('"'):
        return value
    try:
        read: str = json.loads(value)
    except ValueError:
        return None
    return read


def _column(name: str) -> str:
    return _quoted(name) if "=" in name else _value(name)


def _value(text: str) -> str:
    return _quoted(text) if _BETWEEN in text or text.startswith('"') else text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
