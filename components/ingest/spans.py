"""Spans: the parts that a data source grows by, each a number or a day. Pure.

TFX counts days from 1970-01-01: with {YYYY}, {MM} and {DD} in a source, the span of that day is 0.
"""

import re
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Literal

Kind = Literal["number", "date"]
_EPOCH = date(1970, 1, 1)
PLACEHOLDER = re.compile(r"\{(?:SPAN|VERSION|YYYY|MM|DD)(?::\d+)?\}")
"""The places in a pattern that TFX fills in."""

_NUMBER = re.compile(r"\{SPAN(?::(\d+))?\}")
_DATE = tuple(re.compile(rf"\{{{part}\}}") for part in ("YYYY", "MM", "DD"))


def span_kind(patterns: Iterable[str]) -> Kind | None:
    """The naming of a source's spans; None where it has none.

    Args:
        patterns: of its files.
    """
    text = " ".join(patterns)
    if _NUMBER.search(text):
        return "number"
    return "date" if all(part.search(text) for part in _DATE) else None


def span_number(span: int | str) -> int:
    """A span as TFX counts it.

    Args:
        span: a number, at least 0, or a day as 2027-01-31.

    Raises:
        ValueError: it is neither.
    """
    number = span if isinstance(span, int) else (date.fromisoformat(span) - _EPOCH).days
    if number < 0:
        raise ValueError(f"the span {span} is before the first one")
    return number


def at_span(pattern: str, number: int) -> str:
    """A pattern with its span filled in, as TFX does it; a version stays.

    Args:
        pattern: with {SPAN}, {SPAN:WIDTH} or {YYYY}, {MM} and {DD}; another stays as it is.
        number: of the span, at least 0.
    """
    pattern = _NUMBER.sub(lambda found: str(number).zfill(int(found[1] or 0)), pattern)
    day = _EPOCH + timedelta(days=number) if any(part.search(pattern) for part in _DATE) else _EPOCH
    for part, value in zip(_DATE, day.isoformat().split("-"), strict=True):
        pattern = part.sub(value, pattern)
    return pattern
