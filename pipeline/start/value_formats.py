"""Detects how a column's numbers and dates are written, if Ingest needs settings to parse them. Pure.

A format is recognised only if every value of the column has it, except words for a missing value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.notations import plain_dates, written_numbers
from slipway.components.ingest.options import NumberFormat
from slipway.pipeline.start.unread_numbers import CURRENCY, with_unit

MISSING_WORDS = frozenset(
    [
        "na", "n/a", "n.a.", "nan", "nat", "<na>", "nil", "none", "null", "(null)", "<null>", "[null]", "\\n",
        "missing", "unknown", "no data", "not available", "k.a.",
        "-", "--", "---", "?", ".", "..", "...", ":", "*",
        "#n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!",
        "#nv", "#wert!", "#bezug!", "#zahl!", "#valeur!", "#nombre!", "#nom?", "#nul!",
        "#n/d", "#valore!", "#rif!", "#nome?", "#nullo!", "#valor!", "#núm!", "#nulo!",
        "#¡valor!", "#¡div/0!", "#¡ref!", "#¿nombre?", "#¡num!", "#¡nulo!",
    ]
)  # fmt: skip
"""What people write into a cell without a value, in lower case; databases write \\N, and sheets #DIV/0!."""
# null bhp, NaN %: programs write a unit behind whatever there is.
_WORD_WITH_UNIT = r"^(?:na|n/a|nan|nil|none|null)(?: ?%| [^\s\d]{1,12})$"
_SEPARATORS = ((".", ""), (".", ","), (",", ""), (",", "."), (",", " "), (".", " "), (".", "'"))
_UNIT = re.compile(rf"%|{CURRENCY}")
_THOUSANDS_BY_POINT = (",", ".")
# An ID or a code; so many digits after the decimal sign are a fraction of full precision.
_NO_NUMBER = r"^[-(]?0[0-9]|(?:^|[^0-9.,])[0-9]{16}"
# A telephone number, unless it has a unit, as +1.5% has.
_TELEPHONE = r"^\+"
# A zero before a separator, which is then the decimal point or comma and no thousands separator.
_LONE_ZERO = {".": r"^[-(]?0\.", ",": r"^[-(]?0,"}
# Signs that Ingest takes for a minus only in a column with a number format of its own.
_OTHER_MINUS = re.compile("[(\u2212]|-$")
# Numbering such as (1), (2), or 1-, 2-.
_NUMBERING = re.compile(r"\(.*|.*-")
# The year 9999 stands for no end.
_ISO_DATE = r"^(?:[12][0-9]{3}|9999)-[01][0-9]-[0-3][0-9]"
_PLAIN_DATE = _ISO_DATE + "(?: [0-9:]{8})?$"
_OF_12_HOURS = "[AaPp][Mm]$"
# A date has groups of digits and sometimes a month's name; nothing else is tried against the date formats.
# `*+` gives nothing back: a cell of 200 kB would otherwise be split in each possible way, which takes hours.
# Nor is a longer text than any date tried: each of 300 formats goes over all of it.
_DATE_LIKE = re.compile(r"(?=.{,64}$)(?=.*\d)[\d./\-, :]*+([A-Za-z]{3,9})?[\d./\-, :]*+([AaPp][Mm])?")
_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%b %d %Y", "%b %d, %Y", "%d %b %Y", "%d-%b-%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%y",
    "%b-%d-%Y", "%Y-%b-%d", "%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%b %Y", "%b-%Y", "%b-%y",
)  # fmt: skip
_TIMES = (
    "", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %I:%M%p", " %I:%M:%S%p",
    ", %H:%M", ", %H:%M:%S", ", %I:%M %p", ", %I:%M:%S %p",
)  # fmt: skip
_DAY_FIRST, _MONTH_FIRST = ("%d/%m/", "%d-%m-", "%d.%m."), ("%m/%d/", "%m-%d-", "%m.%d.")
_OTHER_ORDER = dict(zip((*_DAY_FIRST, *_MONTH_FIRST), (*_MONTH_FIRST, *_DAY_FIRST), strict=True))
# So many dates of the first day of a month are hardly days of one month.
_LEAST_MONTHS, _FIRST_OF_MONTH = 3, "^[0-9]{4}-[0-9]{2}-01"
# 20240131. Few numbers are dates by chance: one in 27 of the eight-digit numbers that begin with 19 or 20.
_DAY_OF_DIGITS, _DIGITS_DAY = "%Y%m%d", r"^(?:(?:19|20)[0-9]{6}|99991231)$"
_FIRST_DAY, _LAST_DAY, _NO_END, _LEAST_DAYS = 19_000_101, 20_991_231, 99_991_231, 5
# A unit other than a currency or a percent sign is one if it follows so many different numbers.
_LEAST_OF_UNIT = 10
# So many fractions rarely all have three digits: a tenth of them end in zeros, which programs leave out.
_LEAST_WITH_POINT = 30
# 2:50 or 1:05 PM, or two units of time: 2h 50m.
_CLOCK_LIKE = ":|[A-Za-z],? ?[0-9]"
# But 48d12m30s is an angle, 3D2M a code, and 40M61S an alignment.
_NO_CLOCK = "[0-9][dD][0-9]+[mM]|M(?:[6-9][0-9]|[0-9]{3,})S"
# Formats are tried on this many values first.
_FEW = 50


@dataclass(frozen=True)
class ValueFormats:
    """The workload's settings for how values are written.

    Attributes:
        null_values: words that mean a missing value.
        numbers: column -> fields of `NumberFormat` that differ from the defaults.
        dates: column -> date format.
        words: column -> how it is written and read, as text.
        shared: column of texts in a CSV -> word in it that means no value, as it does in another column
            -> that column.
    """

    null_values: tuple[str, ...] = ()
    numbers: Mapping[str, Mapping[str, str | bool]] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _ColumnFormat:
    """The format in which one column is written."""

    words: str
    number: Mapping[str, str | bool] | None = None
    date: str | None = None
    missing: tuple[str, ...] = ()
    is_unsure: bool = False  # whether the day or the month may come first
    are_first_days: bool = False  # whether it is chosen because all dates are first days of months then


def detect_value_formats(texts: Mapping[str, pa.Array], *, has_types: bool) -> ValueFormats:
    """Detect the formats of text columns.

    If some are written with decimal commas, and none with decimal points, 1.250 is above a thousand. Dates
    that do not show whether the day or the month comes first are read in the order of those that do, or
    else of those that are first days of months in one order only.

    Args:
        texts: column -> distinct values, Arrow large_string without null.
        has_types: whether the file format has types (JSON Lines, Parquet). Then a text column of numbers
            needs a setting, even if the numbers are written plainly.
    """
    has_commas = decimal_signs(texts) == {","}
    found = {
        name: each
        for name, values in texts.items()
        if (each := _column_format(values, has_types=has_types, has_commas=has_commas))
    }
    order = _order_of_dates(each for each in found.values() if not each.is_unsure)
    likely = () if order else _order_of_dates(each for each in found.values() if each.are_first_days)
    if order or likely:
        unsure = {
            name: texts[name]
            for name, each in found.items()
            if each.is_unsure and not (likely and each.are_first_days)
        }
        known = {
            name: _column_format(values, has_types=has_types, order=order or likely)
            for name, values in unsure.items()
        }
        found |= {name: each for name, each in known.items() if each}
    from_columns = {word: name for name, each in reversed(found.items()) for word in each.missing}
    missing = tuple(sorted(from_columns))
    shared: dict[str, Mapping[str, str]] = {}
    for name, values in {} if has_types else {n: v for n, v in texts.items() if n not in found}.items():
        # In a CSV, words for a missing value apply to every column.
        if words := [word for word in missing if word in values.to_pylist()]:
            shared[name] = {word: from_columns[word] for word in words}
            found[name] = _ColumnFormat(
                f"{' and '.join(_shown(words))} for no value, as in the columns of numbers"
            )
    return ValueFormats(
        null_values=missing,
        numbers={name: each.number for name, each in found.items() if each.number is not None},
        dates={name: each.date for name, each in found.items() if each.date is not None},
        words={name: each.words for name, each in found.items()},
        shared=shared,
    )


def decimal_signs(texts: Mapping[str, pa.Array]) -> set[str]:
    """Return the signs that are before fractions for certain: 12,5 and 0.5 tell, and 1.250 does not.

    Args:
        texts: column -> distinct values, Arrow large_string without null.
    """
    found = set()
    for values in texts.values():
        present = _present(pc.utf8_trim_whitespace(values))[0]
        has_signs = pc.any(pc.match_substring_regex(present, "[.,]")).as_py()
        if has_signs and pc.all(pc.match_substring_regex(present, "[0-9]")).as_py():
            signs = {decimal for decimal, _ in _fitting(present, _unit(present)[0])}
            found |= signs if len(signs) == 1 else set()
    return found


def _present(trimmed: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the distinct texts that are no words for a missing value, and a mask of these words."""
    lower = pc.utf8_lower(trimmed)
    is_word = pc.is_in(lower, value_set=pa.array(["", *MISSING_WORDS], trimmed.type))
    is_word = pc.or_(is_word, pc.match_substring_regex(lower, _WORD_WITH_UNIT))
    return pc.unique(trimmed.filter(pc.invert(is_word))), is_word


def _order_of_dates(formats: Iterable[_ColumnFormat]) -> tuple[str, ...]:
    """Return the beginnings of formats, with the day or the month first, that all such dates have."""
    dates = [each.date for each in formats if each.date]
    orders = [order for order in (_DAY_FIRST, _MONTH_FIRST) if any(each.startswith(order) for each in dates)]
    return orders[0] if len(orders) == 1 else ()


def _column_format(
    values: pa.Array, *, has_types: bool, has_commas: bool = False, order: tuple[str, ...] = ()
) -> _ColumnFormat | None:
    trimmed = pc.utf8_trim_whitespace(values)
    present, is_word = _present(trimmed)
    if not len(present):
        return None
    # Ingest compares the cells of a CSV as they are written, and other texts without the blanks around them.
    words = tuple(filter(None, pc.unique((trimmed if has_types else values).filter(is_word)).to_pylist()))
    found = _day_of_digits(present) or _number(present, has_commas=has_commas) or _clock(present)
    if found is None:
        # Only a format removes the blanks around the dates of a CSV.
        has_blanks = not has_types and pc.any(pc.not_equal(trimmed, values)).as_py()
        found = _date(_with_blank(present) if has_blanks else present, order)
    if found is None:
        return None
    unit = str((found.number or {}).get("unit", "")).lower()
    with_unit = [low for word in words if (low := word.strip().lower()) not in {"", *MISSING_WORDS}]
    if with_unit and not (unit and all(low.endswith(unit) for low in with_unit)):
        return None  # none given
    is_plain = not found.words
    # In a CSV these are empty cells; elsewhere only a format makes them missing values, and removes blanks.
    has_empty = has_types and pc.any(pc.equal(trimmed, "")).as_py()
    is_padded = has_types and pc.any(pc.not_equal(trimmed, values)).as_py()
    if is_plain and not (words or has_empty or is_padded) and not (has_types and found.number is not None):
        return None
    number = None if is_plain and not has_types else found.number
    date = found.date or ("%Y-%m-%d" if found.date == "" and has_types else None)
    said = [found.words] if found.words else []
    shown = [*_shown(words), *(["empty texts"] * (has_empty and found.date is not None))]
    said += [f"{' and '.join(shown)} for no value"] if shown else []
    return _ColumnFormat(", ".join(said), number, date, words, found.is_unsure, found.are_first_days)


def _shown(words: Sequence[str]) -> list[str]:
    """Return words for no value as they are named in a message."""
    return list(dict.fromkeys(word.strip() or "blanks" for word in words))


def _unit(present: pa.Array) -> tuple[str, str]:
    """Return the unit of the numbers and a text with it; empty if they have none."""
    shown = next((text for text in present.to_pylist() if _UNIT.search(text)), "")
    money = _UNIT.search(shown)
    unit = money.group() if money else _unit_of_all(present)
    return unit, shown or (present[0].as_py() if unit else "")


def _fitting(present: pa.Array, unit: str) -> list[tuple[str, str]]:
    """Return the decimal signs and thousands separators with which all texts are numbers; maybe none."""
    others = _NO_NUMBER if unit else f"{_NO_NUMBER}|{_TELEPHONE}"
    if pc.any(pc.match_substring_regex(present, others)).as_py():
        return []
    lone = [
        sign for sign, form in _LONE_ZERO.items() if pc.any(pc.match_substring_regex(present, form)).as_py()
    ]
    return [
        (decimal, thousands)
        for decimal, thousands in _SEPARATORS
        if thousands not in lone
        and pc.all(written_numbers(present, NumberFormat(decimal, thousands, unit))[1]).as_py()
    ]


def _number(present: pa.Array, *, has_commas: bool) -> _ColumnFormat | None:
    unit, shown = _unit(present)
    named = {"unit": unit} if unit else {}
    fitting = _fitting(present, unit)
    if not fitting:
        return None
    has_points = pc.any(pc.match_substring(present, ".")).as_py()
    if _THOUSANDS_BY_POINT in fitting and ((has_commas and has_points) or _are_thousands(present)):
        fitting.sort(key=lambda each: each != _THOUSANDS_BY_POINT)
    decimal, thousands = fitting[0]
    texts = present.to_pylist()
    negative = [text for text in texts if _OTHER_MINUS.search(text)]
    if negative and all(map(_NUMBERING.fullmatch, texts)):
        return None
    if (decimal, thousands) == (".", "") and not unit and not negative:
        return _ColumnFormat("", {})
    others = [text for text in texts if text not in negative] or texts
    # An apostrophe may be a curly one.
    with_sign = (text for text in others if (thousands or decimal) in text.replace("\u2019", "'"))
    words = f"written as {next(with_sign, shown or others[0])}"
    if negative:
        words += f", negative ones as {negative[0]}"
    if thousands and len(fitting) > 1 and (thousands, "") in fitting:
        words += f", {thousands!r} read as the thousands separator"
    settings = {"decimal": decimal} if decimal != "." else {}
    return _ColumnFormat(words, settings | ({"thousands": thousands} if thousands else {}) | named)


def _are_thousands(present: pa.Array) -> bool:
    """Whether a point separates thousands rather than a fraction: 950 and 12.500, but neither 1250 nor 1.5.

    Args:
        present: values in which each point is followed by three digits.
    """
    with_point = pc.match_substring(present, ".")
    is_long = pc.match_substring_regex(present, "[0-9]{4}")
    is_some = pc.sum(with_point).as_py() >= _LEAST_WITH_POINT and not pc.all(with_point).as_py()
    return bool(is_some and not pc.any(is_long).as_py())


def maybe_thousands(columns: Mapping[str, npt.NDArray[np.float64]]) -> list[str]:
    """Return the number columns that may be written as 950 and 12.500: their texts decide.

    Args:
        columns: name -> float64 with NaN.
    """
    found = []
    for name, values in columns.items():
        numbers = np.unique(np.abs(values[~np.isnan(values)]))
        fractions = numbers[numbers != np.floor(numbers)]
        if len(fractions) < _LEAST_WITH_POINT or len(fractions) == len(numbers) or numbers[-1] >= 1000:
            continue
        if fractions[0] >= 1 and np.allclose(fractions * 1000, np.round(fractions * 1000), rtol=0, atol=1e-6):
            found.append(name)
    return found


def _unit_of_all(present: pa.Array) -> str:
    """Return the unit after every number, such as kg or °C; empty if there is none, or too few values."""
    unit = with_unit(present[0].as_py()) if len(present) >= _LEAST_OF_UNIT else None
    return unit if unit and pc.all(pc.ends_with(present, unit)).as_py() else ""


def _day_of_digits(present: pa.Array) -> _ColumnFormat | None:
    """Return the format of dates that are written as integers, or None."""
    is_whole = pc.all(pc.match_substring_regex(present, _DIGITS_DAY)).as_py()
    if not is_whole or len(present) < _LEAST_DAYS or not _are_dates(present, _DAY_OF_DIGITS):
        return None
    return _ColumnFormat(f"dates as {present[0].as_py()}", date=_DAY_OF_DIGITS)


def _clock(present: pa.Array) -> _ColumnFormat | None:
    """Return the format of durations or times of day, or None."""
    plain, fits = written_numbers(present, NumberFormat(clock=True))
    is_clock, is_none = (
        pc.any(pc.match_substring_regex(present, each)).as_py() for each in (_CLOCK_LIKE, _NO_CLOCK)
    )
    # 5m, 20m alone may be meters.
    if not (pc.all(fits).as_py() and is_clock) or is_none:
        return None
    first = max(present.to_pylist(), key=len)
    seconds = plain[present.index(first).as_py()].as_py()
    return _ColumnFormat(f"written as {first}, read as {seconds} seconds", {"clock": True})


def _with_blank(texts: pa.Array) -> pa.Array:
    """Return the texts with a blank in front."""
    blank, nothing = pa.scalar(" ", texts.type), pa.scalar("", texts.type)
    return pc.binary_join_element_wise(blank, texts, nothing)


def _date(present: pa.Array, order: tuple[str, ...]) -> _ColumnFormat | None:
    """Return the format of dates, or None.

    Args:
        order: the beginnings of formats to prefer, if other columns tell whether the day comes first.
    """
    few = present.slice(0, _FEW)
    if not all(_DATE_LIKE.fullmatch(text) for text in few.to_pylist()):
        return None
    is_iso = pc.all(pc.match_substring_regex(present, _ISO_DATE)).as_py()
    if is_iso and not pc.any(pc.match_substring_regex(present, _OF_12_HOURS)).as_py():
        return _ColumnFormat("", date="")
    fitting = [
        date_format
        for date_format in (day + time for time in _TIMES for day in _DAYS)
        if _are_dates(few, date_format) and _are_dates(present, date_format)
    ]
    if not fitting:
        return None
    chosen = fitting[0]
    others = [other for first, other in _OTHER_ORDER.items() if chosen.startswith(first)]
    other = others[0] + chosen[len(others[0]) :] if others else ""
    is_unsure = other in fitting
    first_days = [
        each for each in (chosen, other) if is_unsure and _are_first_days(present, each, (chosen, other))
    ]
    if is_unsure and (other.startswith(order) if order else other in first_days):
        chosen, other = other, chosen
    first = "day" if chosen.startswith(_DAY_FIRST) else "month"
    words = f"dates as {present[0].as_py().strip()}"
    if "%y" in chosen:  # 68 is 2068, and 69 is 1969: of births, these may be the wrong centuries
        years = pc.min_max(pc.utf8_slice_codeunits(plain_dates(present, chosen), 0, 4))
        words += f", read as of {years['min']} to {years['max']}"
    if is_unsure and order:
        words += f", the {first} first, as in other columns (otherwise write {other!r} in data.dates)"
    elif is_unsure:
        words += f", assuming that the {first} comes first (otherwise write {other!r} in data.dates)"
    return _ColumnFormat(words, date=chosen, is_unsure=is_unsure, are_first_days=chosen in first_days)


def _are_first_days(present: pa.Array, date_format: str, formats: Iterable[str]) -> bool:
    """Whether dates of a format are first days of months, and by none of the other formats they are."""

    def are_firsts(each: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(plain_dates(present, each), _FIRST_OF_MONTH)).as_py())

    others = (each for each in formats if each != date_format)
    return len(present) >= _LEAST_MONTHS and are_firsts(date_format) and not any(map(are_firsts, others))


def _are_dates(texts: pa.Array, date_format: str) -> bool:
    plain = plain_dates(texts, date_format)
    return bool(pc.all(pc.match_substring_regex(plain, _PLAIN_DATE)).as_py())


def whole_days(columns: Mapping[str, npt.NDArray[np.float64]]) -> dict[str, pa.Array]:
    """Return the distinct values, as texts, of number columns that hold dates such as 20240131.

    Args:
        columns: name -> float64 with NaN.
    """
    found = {}
    for name, values in columns.items():
        numbers = np.unique(values[~np.isnan(values)])
        days = numbers[numbers != _NO_END]
        if len(days) < _LEAST_DAYS or days[0] < _FIRST_DAY or days[-1] > _LAST_DAY:
            continue
        texts = pa.array(numbers.astype(np.int64)).cast(pa.large_string())
        if _are_dates(texts, _DAY_OF_DIGITS):
            found[name] = texts
    return found


def distinct_texts(columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, pa.Array]:
    """Return the distinct values of text columns."""
    return {
        name: pc.unique(pa.array(values, pa.large_string())).drop_null() for name, values in columns.items()
    }
