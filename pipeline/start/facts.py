"""Computes the properties of a column, on which decisions about it are based. Pure."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.pipeline.start.unread_numbers import UnreadNumbers, others_of, unread_numbers

Values = npt.NDArray[Any]

# 2024-03-01, 2024-03-01 10:20, 2024-03-01T10:20:30.5Z and similar forms, which TensorFlow ops can parse, too.
# BigQuery writes 2024-03-01 10:20:30 UTC, PostgreSQL 2024-03-01 10:20:30+00, Shopify and git ... -0500.
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}"
    r"(?P<time>[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(?P<zone> ?(?:Z|UTC|GMT|[+-]\d{2}(:?\d{2})?))?)?"
)
_UTC = dict.fromkeys(("Z", "UTC", "GMT", "-00", "-0000"), "+0000")
# A day that a calendar may have, or 0000-00-00 for none. Codes such as 4711-56-78 are written alike.
_DAY = re.compile(r"(?:000[01]|[12]\d{3}|9999)-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])")
# Nearly all texts of a column of dates are days of a calendar; others may be any that look like one.
_MOSTLY = 0.9
# Seconds since 1970, from September 2001 to 2100.
_EPOCH_SECONDS = (1e9, 4.1e9)
EPOCH_UNITS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
"""The units in which numbers count the time since 1970, with how many of each make a second."""
# The same of columns whose name does not suggest a time, from 2000 to 2042. Seconds may be anything then.
_LIKELY_SECONDS = (9.4e8, 2.3e9)
_LEAST_LIKELY = 20
# Times since 1970 of one column, such as 2002 to 2033, mostly lie closer together; durations of 17 to 68
# minutes in nanoseconds are as large as these times in milliseconds, and of 11 to 47 days as in microseconds.
_MOST_SPREAD = 2.0
_LIKE_DURATIONS = ("milliseconds", "microseconds")
_NAMED_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "seconds"), "seconds"),
    **dict.fromkeys(("ms", "millis", "milliseconds"), "milliseconds"),
    **dict.fromkeys(("us", "micros", "microseconds"), "microseconds"),
    **dict.fromkeys(("ns", "nanos", "nanoseconds"), "nanoseconds"),
}
_DURATION_WORDS = {"duration", "elapsed", "latency", "runtime", "uptime"}
_NAME_WORD = re.compile(r"[^\W_]+?(?=[\W_]|(?<=[a-z])[A-Z]|$)")
_TIME_WORDS = ("time", "date", "_at", "_ts")
_TIME_END = re.compile(r"[a-z](At|Ts|TS)$")
_MOST_VALUES = 1000
_NINES = re.compile(r"9{2,}(\.9+)?")
LONE_CODES = frozenset([-1.0, -9.0])
"""Numbers that often mean no value, if no other number of the column is negative."""
# A number that means a missing value recurs, and other numbers occur beside it.
_LEAST_PLACEHOLDERS, _LEAST_OTHERS = 5, 5
_FLOAT32_MAX = 3.4e38
_WORD = re.compile(r"[^\W_]+")
_COUNTED_TEXTS = 10_000
EXACT = 2**53
"""Up to this value, float64 represents every integer exactly."""


@dataclass(frozen=True)
class Facts:
    """The properties of one column.

    Attributes:
        kind: "int", "float" or "text".
        missing: rows without a value.
        distinct: the number of distinct values.
        counts: value -> rows, most frequent first, at most 1,000.
        least: the smallest number; 0 for text.
        greatest: the largest number; 0 for text.
        median: the median of the numbers; 0 for text.
        missing_value_placeholders: number or date that may mean a missing value, such as -999 beside 0 to 40,
            or 9999-12-31 beside dates of this century -> rows; see `_missing_value_placeholders` and
            `_date_placeholders`.
        words: the mean number of words of a text.
        others: the distinct values of a text that are not numbers, if nearly all are numbers; at most 1,000.
        is_whole: whether all numbers are whole, as in a column of IDs that a program wrote as 1.0, 2.0.
        unread_numbers: what the texts are if they look like numbers that are not read as such; else None.
        ngrams: the 99% quantile of the number of words and word pairs in a text.
        moment: "date", "time" (a date with a time of day) or one of `EPOCH_UNITS` (since 1970) if the column
            holds points in time, else "".
        longest: the greatest number of values in a row. Above 1, the column holds lists: `distinct`, `counts`
            and all that follows are about their values, and a row without a value is missing.
        values_per_row: for lists, the 99% quantile of the number of values in a row.
        shortest: for lists, the smallest number of values in a row that has any.
        values: for lists, the number of values in all rows.
        nan_lists: for lists, the number of rows with a NaN among their numbers.
        is_duration: whether the file's type says that the numbers are durations.
        has_notation: whether the numbers are written with a unit, separators or colons, as codes are not.
    """

    name: str
    kind: str
    rows: int
    missing: int
    distinct: int
    counts: dict[Any, int]
    least: float = 0.0
    greatest: float = 0.0
    median: float = 0.0
    missing_value_placeholders: Mapping[float | str, int] = field(default_factory=dict)
    words: float = 0.0
    others: tuple[str, ...] = ()
    is_whole: bool = False
    unread_numbers: UnreadNumbers | None = None
    ngrams: int = 0
    moment: str = ""
    longest: int = 1
    values_per_row: int = 1
    shortest: int = 1
    values: int = 0
    nan_lists: int = 0
    is_duration: bool = False
    has_notation: bool = False

    @property
    def is_list(self) -> bool:
        """Whether a row may have several values."""
        return self.longest > 1

    @property
    def present(self) -> int:
        """The number of rows that have a value."""
        return self.rows - self.missing

    @property
    def missing_share(self) -> float:
        """The share of rows without a value, 0 to 1."""
        return self.missing / self.rows if self.rows else 0.0

    @property
    def is_too_large(self) -> bool:
        """Whether the column holds a number beyond the range of float32."""
        return max(abs(self.least), abs(self.greatest)) > _FLOAT32_MAX


def facts_of(
    name: str, kind: str, values: Values, *, is_duration: bool = False, has_notation: bool = False
) -> Facts:
    """Compute the properties of a column.

    Args:
        kind: "int", "float" or "text".
        values: [rows], float64 with NaN or objects (str) with None.
        is_duration: whether the file's type says that the numbers are durations.
        has_notation: as in `Facts`.
    """
    if kind == "text":
        present = [value for value in values.tolist() if value is not None]
        counts = Counter(present)
        moment = _moment_of_texts(counts)
        others = others_of(counts, most=_MOST_VALUES)
        return Facts(
            name=name,
            kind=kind,
            rows=len(values),
            missing=len(values) - len(present),
            distinct=len(counts),
            counts=_most_frequent(counts),
            words=sum(len(text.split()) for text in counts) / max(len(counts), 1),
            others=others,
            unread_numbers=unread_numbers(list(counts), others) if present else None,
            ngrams=_ngrams(list(itertools.islice(counts, _COUNTED_TEXTS))),
            missing_value_placeholders=_date_placeholders(counts) if moment else {},
            moment=moment,
        )
    numbers = values[~np.isnan(values)]
    found, rows = np.unique(numbers, return_counts=True)
    cast = int if kind == "int" else float
    counted = Counter({cast(value): int(count) for value, count in zip(found, rows, strict=True)})
    return Facts(
        name=name,
        kind=kind,
        rows=len(values),
        missing=len(values) - len(numbers),
        distinct=len(found),
        counts=_most_frequent(counted),
        least=float(found[0]) if len(found) else 0.0,
        greatest=float(found[-1]) if len(found) else 0.0,
        median=float(np.median(numbers)) if len(numbers) else 0.0,
        is_whole=bool(np.all(found == np.floor(found)) and np.all(np.abs(found) <= EXACT)),
        missing_value_placeholders=_missing_value_placeholders(found.tolist(), rows.tolist()),
        moment="" if is_duration else _moment_of_numbers(name, found),
        is_duration=is_duration,
        has_notation=has_notation,
    )


def facts_of_lists(name: str, kind: str, lists: Sequence[Values]) -> Facts:
    """Compute the properties of a column with several values per row.

    Args:
        kind: "int", "float" or "text".
        lists: the values of each row, float64 or objects (str); empty where a row has none.
    """
    lengths = np.array([len(each) for each in lists])
    filled = lengths[lengths > 0]
    return replace(
        facts_of(name, kind, np.concatenate([each for each in lists if len(each)])),
        rows=len(lists),
        missing=int((lengths == 0).sum()),
        missing_value_placeholders={},
        longest=int(filled.max()),
        values_per_row=math.ceil(np.quantile(filled, 0.99)),
        shortest=int(filled.min()),
        values=int(filled.sum()),
        nan_lists=0 if kind == "text" else sum(bool(np.isnan(each).any()) for each in lists),
    )


def _date_placeholders(counts: Counter[str]) -> dict[float | str, int]:
    """Return dates that recur and lie further from all others than those lie apart, with their rows.

    Examples are 0000-00-00, 1900-01-01 and 9999-12-31 beside dates of a few years.

    Args:
        counts: text that begins with YYYY-MM-DD -> rows.
    """
    texts = sorted(counts)
    days = [_day_number(text) for text in texts]
    low, high = 0, len(texts)
    placeholders: dict[float | str, int] = {}
    while high - low > _LEAST_OTHERS:
        if counts[texts[low]] >= _LEAST_PLACEHOLDERS and (
            days[low + 1] - days[low] > days[high - 1] - days[low + 1]
        ):
            placeholders[texts[low]] = counts[texts[low]]
            low += 1
        elif counts[texts[high - 1]] >= _LEAST_PLACEHOLDERS and (
            days[high - 1] - days[high - 2] > days[high - 2] - days[low]
        ):
            placeholders[texts[high - 1]] = counts[texts[high - 1]]
            high -= 1
        else:
            break
    return placeholders


def _day_number(text: str) -> int:
    """Return a number of days that orders all dates, also those that no calendar has, such as 0000-00-00."""
    return 372 * int(text[:4]) + 31 * int(text[5:7]) + int(text[8:10])


def _missing_value_placeholders(found: list[float], rows: list[int]) -> dict[float | str, int]:
    """Return outlying numbers that recur and look like placeholders for a missing value, with their rows.

    -1 and -9 count as such if no other number is negative.

    Args:
        found: the distinct numbers, ascending.
        rows: the number of rows of each.
    """
    low, high = 0, len(found)
    placeholders: dict[float | str, int] = {}
    while high - low > _LEAST_OTHERS:
        first, last = found[low], found[high - 1]
        inner = found[low + 1 : high]
        if (
            rows[low] >= _LEAST_PLACEHOLDERS
            and first < 0
            and (
                (_are_nines(first) and inner[0] > first / 2)
                or inner[0] - first > inner[-1] - inner[0]
                or (first in LONE_CODES and inner[0] >= 0)
            )
        ):
            placeholders[first] = rows[low]
            low += 1
        elif rows[high - 1] >= _LEAST_PLACEHOLDERS and _are_nines(last) and found[high - 2] < last / 2:
            placeholders[last] = rows[high - 1]
            high -= 1
        else:
            break
    return placeholders


def lone_code(values: Iterable[Any]) -> list[float]:
    """Return the one negative number among some values if it often means no value, such as -1 or -99."""
    negative = [value for value in values if not isinstance(value, str) and value < 0]
    is_code = len(negative) == 1 and (negative[0] in LONE_CODES or _are_nines(negative[0]))
    return negative if is_code else []


def _are_nines(number: float) -> bool:
    """Whether all digits are nines, such as -99, 999, 9999, 99.9 and 999.9."""
    return bool(_NINES.fullmatch(repr(abs(number)).removesuffix(".0")))


def _ngrams(texts: list[str]) -> int:
    words = [len(_WORD.findall(text)) for text in texts]
    return max(2 * math.ceil(np.quantile(words, 0.99)) - 1, 0) if words else 0


def _most_frequent(counts: Counter[Any]) -> dict[Any, int]:
    # Ties are in the order of the values, so that the same file always yields the same generated code.
    return dict(sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[:_MOST_VALUES])


def _moment_of_texts(counts: Counter[str]) -> str:
    matches = [_MOMENT.fullmatch(text) for text in counts]
    if not matches or not all(matches) or sum(map(bool, map(_DAY.match, counts))) < _MOSTLY * len(matches):
        return ""
    return "time" if any(match and match["time"] for match in matches) else "date"


def zones_of(column: Facts) -> set[str]:
    """Return the time zones of a column's times as +HHMM; "none" for times without one."""
    matches = [_MOMENT.fullmatch(text) for text in column.counts] if column.moment == "time" else []
    zones = {(match["zone"] or "").strip().replace(":", "") for match in matches if match and match["time"]}
    return {_UTC.get(zone, f"{zone:0<5}" if zone else "none") for zone in zones}


def _moment_of_numbers(name: str, found: npt.NDArray[np.float64]) -> str:
    """Return the unit if the numbers may be times since 1970 and the name suggests a time, else ""."""
    is_named = any(word in f"_{name.lower()}" for word in _TIME_WORDS) or _TIME_END.search(name)
    return _epoch_unit(name, found, _EPOCH_SECONDS) if len(found) and is_named else ""


def _epoch_unit(name: str, found: npt.NDArray[np.float64], seconds: tuple[float, float]) -> str:
    """Return the unit in which all of the ascending numbers lie between two times since 1970.

    The result is "" if there is none, or if the name suggests durations or another unit.
    """
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    if not _DURATION_WORDS.isdisjoint(words):
        return ""
    low, high = seconds
    units = (unit for unit, many in EPOCH_UNITS.items() if low * many <= found[0] <= found[-1] <= high * many)
    unit = next(units, "")
    if unit in _LIKE_DURATIONS and found[-1] > _MOST_SPREAD * found[0]:
        return ""
    return unit if _NAMED_UNITS.get(words[-1] if words else "", unit) == unit else ""


def likely_epoch_unit(column: Facts) -> str:
    """Return the unit in which whole numbers may be times since 1970 although their name does not say so."""
    is_whole = column.kind == "int" or column.is_whole
    is_other = column.moment or column.is_list or column.is_duration
    if not is_whole or is_other or column.distinct < _LEAST_LIKELY:
        return ""
    unit = _epoch_unit(column.name, np.array([column.least, column.greatest]), _LIKELY_SECONDS)
    return "" if unit == "seconds" else unit
