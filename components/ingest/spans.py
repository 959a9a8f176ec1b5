"""Handles spans: the parts that a data source grows by, each a number or a day. Pure.

TFX counts days from 1970-01-01: in a source with {YYYY}, {MM} and {DD}, that day is span 0.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Literal

Kind = Literal["number", "date"]
_EPOCH = date(1970, 1, 1)
PLACEHOLDER = re.compile(r"\{(?:SPAN|VERSION|YYYY|MM|DD)(?::\d+)?\}")
"""The placeholders in a pattern that TFX fills in."""

_NUMBER = re.compile(r"\{SPAN(?::(\d+))?\}")
_LETTERS = {"\\*": "[^/]*", "\\?": "[^/]"}
_DATE = tuple(re.compile(rf"\{{{part}\}}") for part in ("YYYY", "MM", "DD"))


def span_kind(patterns: Iterable[str]) -> Kind | None:
    """Return the kind of a source's spans; None if it has none."""
    text = " ".join(patterns)
    if _NUMBER.search(text):
        return "number"
    return "date" if all(part.search(text) for part in _DATE) else None


def span_number(span: int | str) -> int:
    """Return the number of a span as TFX counts it.

    Args:
        span: a number, at least 0, or a day such as 2027-01-31.

    Raises:
        ValueError: the span is neither, or before the first one.
    """
    number = span if isinstance(span, int) else (date.fromisoformat(span) - _EPOCH).days
    if number < 0:
        raise ValueError(f"the span {span} is before the first one")
    return number


def at_span(pattern: str, number: int) -> str:
    """Return a pattern with its span filled in as TFX does; {VERSION} is kept.

    Args:
        pattern: a pattern with {SPAN}, {SPAN:WIDTH} or {YYYY}, {MM} and {DD}; any other is returned as it is.
        number: the number of the span, at least 0.
    """
    pattern = _NUMBER.sub(lambda found: str(number).zfill(int(found[1] or 0)), pattern)
    day = _EPOCH + timedelta(days=number) if any(part.search(pattern) for part in _DATE) else _EPOCH
    for part, value in zip(_DATE, day.isoformat().split("-"), strict=True):
        pattern = part.sub(value, pattern)
    return pattern


def by_span(files: Iterable[Path], patterns: Collection[str]) -> dict[int, list[Path]]:
    """Return a source's files by the numbers of their spans; those whose paths show none are left out.

    Args:
        files: absolute paths, which were found by the patterns.
        patterns: each with {SPAN}, or with {YYYY}, {MM} and {DD}.
    """
    found = defaultdict(list)
    for file in files:
        for span in {_span_of(file.as_posix(), pattern) for pattern in patterns}:
            if span is not None:
                found[span].append(file)
    return dict(found)


def _span_of(path: str, pattern: str) -> int | None:
    steps = pattern.split("/")
    fixed = next(index for index, step in enumerate(steps) if PLACEHOLDER.search(step) or "*" in step)
    text = re.escape("/".join(steps[fixed:]))
    for letter, meaning in _LETTERS.items():
        text = text.replace(letter, meaning)
    text = re.sub(r"\\{SPAN(?::\d+)?\\}", "(?P<number>[0-9]+)", text, count=1)
    text = re.sub(r"\\{VERSION(?::\d+)?\\}", "[0-9]+", text)
    for part, digits in (("YYYY", 4), ("MM", 2), ("DD", 2)):
        text = text.replace(rf"\{{{part}\}}", f"(?P<{part}>[0-9]{{{digits}}})", 1)
    match = re.fullmatch(f".*/{text}", path)
    if match is None:
        return None
    named = match.groupdict()
    with suppress(ValueError):  # not a day, such as 2026-13-01
        return (
            int(named["number"])
            if "number" in named
            else span_number("-".join(named[part] for part in ("YYYY", "MM", "DD")))
        )
    return None
