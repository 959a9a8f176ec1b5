"""Normalises numbers and dates: `$1,234.50` becomes `1234.50`, and `01.03.2021` becomes `2021-03-01`.

Whole columns of text are rewritten to text, so later readers and rules need not know the notation. A text
that does not match its column's format stays text, and is then not a valid number of that column.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.options import NumberFormat, Options

# No-break spaces separate thousands and units, too, as in 1 234,50 €.
_PLAINLY = str.maketrans({"\u2212": "-", "\u00a0": " ", "\u202f": " "})
# In Switzerland, apostrophes separate thousands, which Excel writes as curly ones.
_APOSTROPHES = "['\u2019]"
# In India, groups of two digits stand above a thousand: 12,34,567.
_LAKHS = "[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}"
_ZEROS_BEFORE = r"\b0+([0-9])"
_IN_PARENTHESES = r"^\(([^()+-]+)\)$"
_MINUS_AT_END = r"^([^()+-]+)-$"
# Also matches the forms of pandas and Python, 0 days 01:02:33, -1 days +23:59:59 and -1 day, 23:59:59. With
# so few digits, the seconds fit into 64 bits.
_CLOCK = (
    r"^(?P<sign>-?)(?:(?P<days>[0-9]{1,6}) days?,? \+?)?"
    r"(?:(?P<hours>[0-9]{1,6}):(?P<minutes>[0-5]?[0-9])|(?P<more_minutes>[0-9]{1,6})):"
    r"(?P<seconds>[0-5][0-9])(?P<fraction>(?:\.[0-9]+)?)$"
)
# 1:05 PM, 01:05:09 p.m.: hours and minutes, whereas 1:05 alone is minutes and seconds.
_CLOCK_OF_12 = (
    r"^(?P<hours>0?[1-9]|1[0-2]):(?P<minutes>[0-5][0-9])(?::(?P<seconds>[0-5][0-9]))?"
    r"\s?(?P<half>[AaPp])\.?[Mm]\.?$"
)
# 2h 50m, 1d 2h, 45 min, 1 hour, 5 minutes.
_CLOCK_OF_UNITS = (
    r"(?i)^(?:(?P<days>[0-9]{1,6}) ?d(?:ays?)?,? ?)?(?:(?P<hours>[0-9]{1,6}) ?h(?:(?:ou)?rs?)?,? ?)?"
    r"(?:(?P<minutes>[0-9]{1,6}) ?m(?:in(?:ute)?s?)?,? ?)?(?:(?P<seconds>[0-9]{1,6}) ?s(?:ec(?:ond)?s?)?)?$"
)
_WITH_POINT = r"^[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NO_NUMBER = " (not as data.numbers says)"
# 0.5 beside 45.5% may be a half, or half a percent; zero is the same in both.
_PERCENT, _WITHOUT_PERCENT = "%", " (without the % of data.numbers)"
_ZERO = r"^[-+]?0+(?:[.,]0*)?$"
_BARE = r"^[+-]?[0-9_.,]*[0-9][0-9_.,]*(?:[eE][+-]?[0-9_]+)?$"
_OF_TIME = re.compile(r"%[HIMSp]")
_NAMED_MONTH = re.compile(r"%[bB]")


@dataclass(frozen=True)
class Notations:
    """How the numbers and dates of some columns are written; their texts are rewritten.

    Attributes:
        numbers: the notation of the numbers, by column.
        dates: the `strptime` format of the dates, by column.
        null_values: texts that mean a missing value in these columns.
    """

    numbers: Mapping[str, NumberFormat] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    null_values: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Options) -> "Notations":
        """Return the columns that an ingest's options name."""
        numbers = {name: NumberFormat(**form) for name, form in options.numbers.items()}
        return cls(numbers, options.dates, options.null_values)

    def __contains__(self, column: str) -> bool:
        return column in self.numbers or column in self.dates

    def plain(self, column: str, cells: pa.Array) -> pa.Array:
        """Return the cells of a column, rewritten if it is one of these columns.

        Args:
            cells: Arrow strings, UTF-8.
        """
        if column in self.numbers:
            return plain_numbers(cells, self.numbers[column])
        if column in self.dates:
            return plain_dates(cells, self.dates[column])
        return cells

    def plain_bytes(self, column: str, values: pa.Array) -> pa.Array:
        """Return the values of a column that is not read as text cells, rewritten in the same way.

        Args:
            values: large_binary, null where missing; for dates also whole numbers, such as 20240131. Values
                of other types are returned as they are.
        """
        if column in self.dates and pa.types.is_integer(values.type):
            values = values.cast(pa.large_string()).cast(pa.large_binary())
        if column not in self or not pa.types.is_large_binary(values.type):
            return values
        texts = pc.utf8_trim_whitespace(values.cast(pa.large_string(), safe=False))
        missing = pc.is_in(texts, value_set=pa.array(["", *self.null_values], pa.large_string()))
        texts = pc.if_else(missing, pa.scalar(None, pa.large_string()), texts)
        return self.plain(column, texts).cast(pa.large_binary())


def plain_numbers(cells: pa.Array, form: NumberFormat) -> pa.Array:
    """Rewrite the cells that match `form` as numbers with a decimal point and nothing else.

    With a decimal comma, 1.234 does not match, and is no number: it would be read as 1.234, and may be 1234.
    Among percentages, 0.5 is none, either.
    """
    plain, fits = written_numbers(cells, form)
    rest = cells
    if form.unit == _PERCENT:
        rest = _marked(rest, _BARE, _WITHOUT_PERCENT)
    if form.decimal != ".":
        rest = _marked(rest, _WITH_POINT, _NO_NUMBER)
    return pc.if_else(fits, plain, rest)


def _marked(cells: pa.Array, pattern: str, mark: str) -> pa.Array:
    """Return the cells, with a text after those that match a pattern, so that they are no numbers."""
    marked = pc.binary_join_element_wise(cells, pa.scalar(mark, cells.type), pa.scalar("", cells.type))
    return pc.if_else(pc.match_substring_regex(pc.utf8_trim_whitespace(cells), pattern), marked, cells)


def written_numbers(cells: pa.Array, form: NumberFormat) -> tuple[pa.Array, pa.Array]:
    """Return the cells as plain numbers, and a mask of those that match `form`; the others are undefined."""
    if form.clock:
        return _seconds(pc.utf8_trim_whitespace(cells))
    decimal = re.escape(form.decimal)
    thousands, unit = (re.escape(each.translate(_PLAINLY)) for each in (form.thousands, form.unit))
    thousands = _APOSTROPHES if form.thousands == "'" else thousands
    written = pc.utf8_trim_whitespace(cells)
    for sign, plain in _PLAINLY.items():
        written = pc.replace_substring(written, chr(sign), plain)
    texts = pc.replace_substring_regex(written, _IN_PARENTHESES, r"-\1")
    texts = pc.replace_substring_regex(texts, _MINUS_AT_END, r"-\1")
    if form.unit:
        texts = pc.replace_substring_regex(texts, rf"^{unit}\s*\(([^()+-]+)\)$", r"-\1")  # $(5) for ($5)
        texts = pc.replace_substring_regex(texts, rf"^([+-]?)\s*{unit}\s*", r"\1")
        texts = pc.replace_substring_regex(texts, rf"\s*{unit}$", "")
    whole = rf"[0-9]{{1,3}}(?:{thousands}[0-9]{{3}})+|[0-9]+" if thousands else "[0-9]+"
    if form.thousands == ",":
        whole += f"|{_LAKHS}"
    fits = pc.match_substring_regex(
        texts, rf"^[+-]?(?:(?:{whole})(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][+-]?[0-9]+)?$"
    )
    if form.unit == _PERCENT:
        is_sure = pc.or_(pc.match_substring(written, _PERCENT), pc.match_substring_regex(written, _ZERO))
        fits = pc.and_(fits, is_sure)
    plain = texts
    if thousands:
        plain = pc.replace_substring_regex(plain, thousands, "")
    if form.decimal != ".":
        plain = pc.replace_substring(plain, form.decimal, ".")
    return plain, fits


def _seconds(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    parts = pc.extract_regex(texts, _CLOCK)
    fits = pc.fill_null(pc.is_valid(parts), False)

    def count(name: str) -> pa.Array:
        digits = pc.struct_field(parts, name)
        return pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64())

    minutes = pc.add(count("minutes"), count("more_minutes"))
    of_days = pc.multiply(count("days"), 86_400)
    of_clock = pc.add(count("seconds"), pc.multiply(pc.add(minutes, pc.multiply(count("hours"), 60)), 60))
    sign, fraction = (pc.struct_field(parts, name) for name in ("sign", "fraction"))
    seconds = pc.add(of_days, of_clock)
    plain = pc.binary_join_element_wise(sign, seconds.cast(texts.type), fraction, pa.scalar("", texts.type))
    # Only days have the sign then: -1 day, 23:59:59 is a second less than nothing.
    is_back = pc.and_(pc.equal(sign, "-"), pc.not_equal(pc.struct_field(parts, "days"), ""))
    if pc.any(is_back).as_py():
        back = pc.subtract(of_clock, of_days)
        zero, nothing = pa.scalar("0", texts.type), pa.scalar("", texts.type)
        rest = pc.binary_join_element_wise(zero, fraction, nothing).cast(pa.float64())
        in_parts = pc.add(back.cast(pa.float64()), rest).cast(texts.type)
        back = pc.if_else(pc.equal(fraction, ""), back.cast(texts.type), in_parts)
        plain = pc.if_else(is_back, back, plain)
    for seconds, fits_other in (_seconds_of_day(texts), _seconds_of_units(texts)):
        plain = pc.if_else(fits_other, seconds.cast(texts.type), plain)
        fits = pc.or_(fits, fits_other)
    return plain, fits


def _seconds_of_units(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return durations such as 2h 50m as seconds, and a mask of the texts that are such durations."""
    parts = pc.extract_regex(texts, _CLOCK_OF_UNITS)
    has_one = pc.match_substring_regex(texts, "^[0-9]")
    seconds = pa.scalar(0, pa.int64())
    for name, many in (("days", 86_400), ("hours", 3600), ("minutes", 60), ("seconds", 1)):
        digits = pc.struct_field(parts, name)
        number = pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64())
        seconds = pc.add(seconds, pc.multiply(number, many))
    return seconds, pc.fill_null(pc.and_(pc.is_valid(parts), has_one), False)


def _seconds_of_day(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return times with AM or PM as seconds since midnight, and a mask of the texts that are such times."""
    parts = pc.extract_regex(texts, _CLOCK_OF_12)
    fits = pc.fill_null(pc.is_valid(parts), False)
    hours, minutes, seconds = (
        pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64())
        for digits in (pc.struct_field(parts, name) for name in ("hours", "minutes", "seconds"))
    )
    hours = pc.if_else(pc.equal(hours, 12), 0, hours)
    afternoon = pc.equal(pc.utf8_lower(pc.struct_field(parts, "half")), "p")
    hours = pc.add(hours, pc.if_else(afternoon, 12, 0))
    return pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds), fits


def plain_dates(cells: pa.Array, form: str) -> pa.Array:
    """Rewrite the cells that are dates of the format as YYYY-MM-DD, with hh:mm:ss if it includes a time."""
    texts = pc.utf8_trim_whitespace(cells)
    moments = pc.strptime(texts, format=form, unit="s", error_is_null=True)
    plain = pc.strftime(moments, format="%Y-%m-%d %H:%M:%S" if _OF_TIME.search(form) else "%Y-%m-%d")
    # strptime reads the 31st of February as the 3rd of March, so the date must format back to the text: of a
    # month's name, which may be short or long, to its numbers.
    plainly = _numbers_of if _NAMED_MONTH.search(form) else _without_zeros
    written = pc.strftime(moments, format=form)
    # In any case of letters: am is the same as AM.
    same = pc.equal(*(pc.utf8_upper(plainly(each)) for each in (written, texts)))
    fits = pc.fill_null(pc.and_(pc.is_valid(moments), same), False)
    if "%Y" in form and pc.any(pc.starts_with(plain, "0")).as_py():
        fits = pc.and_(fits, _hold_year(texts, pc.strftime(moments, format="%Y")))
    return pc.if_else(fits, plain.cast(cells.type), cells)


def _hold_year(texts: pa.Array, years: pa.Array) -> pa.Array:
    """Return a mask of the texts that hold their year in four digits: %Y also reads 24, as the year 24."""
    both = zip(texts.to_pylist(), years.to_pylist(), strict=True)
    return pa.array([text is not None and year is not None and year in text for text, year in both])


def _numbers_of(texts: pa.Array) -> pa.Array:
    """Return the numbers in the texts, without leading zeros, between single spaces."""
    numbers = pc.replace_substring_regex(texts.cast(pa.large_string()), "[^0-9]+", " ")
    return pc.utf8_trim_whitespace(_without_zeros(numbers))


def _without_zeros(texts: pa.Array) -> pa.Array:
    """Return the texts without leading zeros of numbers."""
    return pc.replace_substring_regex(texts.cast(pa.large_string()), _ZEROS_BEFORE, r"\1")
