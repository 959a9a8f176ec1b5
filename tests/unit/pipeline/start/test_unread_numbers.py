"""Columns of texts that are numbers to a reader only."""

import pytest

from slipway.pipeline.start.unread_numbers import others_of, unread_numbers


def _what(*texts):
    found = unread_numbers(texts, others_of(texts, most=1000))
    return found.what if found else ""


@pytest.mark.parametrize(("texts", "shown"), [(["٤٢", "٤.٢"], "٤٢"), (["7", "४२"], "४२")])
def test_numbers_in_other_digits_are_told(texts, shown):
    found = unread_numbers(texts, others_of(texts, most=1000))
    assert found.what == f"numbers in other digits than 0 to 9, such as {shown!r}"
    assert found.remedy == "write them with 0 to 9"
    assert not _what("٤٢", "room ٤", "b", "c")


def _measured(*units, rows=60):
    return [f"{row + 0.5}{units[row % len(units)]}" for row in range(rows)]


@pytest.mark.parametrize(
    ("texts", "units"),
    [
        (_measured(" kg", " lb"), "'kg' and 'lb'"),
        (_measured("°C", "°F", ""), "none and '°C' and '°F'"),
        (_measured(" kg/m2", " kg/m²"), "'kg/m2' and 'kg/m²'"),
        (_measured("° N", "° S"), "'° N' and '° S'"),
        (["50%", "12.5 %", "0.5"], "none and '%'"),
        (["1.2M", "3k"], "'M' and 'k'"),
        (["1.2M", "3k", "500", "2B", "1 Tsd."], "none and 'B' and 'M' and 'Tsd.' and 'k'"),
        (["500", "3 Mio"], "none and 'Mio'"),
        (["12 years", "1 year", "2 years"], "'year' and 'years'"),
        (["1 Tag", "3 Tage"], "'Tag' and 'Tage'"),
    ],
)
def test_numbers_in_several_units_are_named_with_the_remedy(texts, units):
    found = unread_numbers(texts, ())
    assert found.what == f"numbers in several units: {units}"
    assert (found.remedy, found.may_be_codes) == ("write them in one unit", False)


@pytest.mark.parametrize(
    "texts",
    [
        _measured(" kg"),
        _measured("A", "B", "C", "D"),
        _measured(" Main St", " Oak Ave"),
        _measured(" kg", " lb", rows=12),
        [*_measured(" kg", " lb"), "heavy"],
        ["12", "12B", "14b"],  # house numbers
        ["3k", "4A", "1.2M"],
        ["3k", "4k"],
        ["3 a", "4 as"],
        ["1 year", "2 months"],
    ],
)
def test_texts_with_other_ends_are_no_numbers_in_several_units(texts):
    assert not _what(*texts)


@pytest.mark.parametrize(
    ("texts", "is_one"), [(("1.5", "1,5 "), True), (("1.5", "2.5"), False), (("1.5", "1,5", "x"), False)]
)
def test_numbers_with_a_point_and_with_a_comma_are_told_from_ids(texts, is_one):
    expected = "numbers, some with a decimal point and some with a comma" if is_one else ""
    assert _what(*texts) == expected


@pytest.mark.parametrize(
    ("texts", "are_pairs"),
    [
        (["48.1, 11.5", "-33, 151.2"], True),
        (["48.137,11.575"], True),
        (["48.137 11.575", "(52.5 13.4)"], True),
        (["48,1; 11,5", "52;13"], True),
        (["48.1° N, 11.5° E", "33.9° S, 151.2° E"], True),
        (["1,234", "5,678"], False),
        (["1 234.5", "12 345"], False),
        (["48.1, 11.5", "Munich"], False),
        (["48.1, 11.5, 3.0"], False),
        (["3, 4", "1, 2"], False),  # codes
        (["20-29", "30-39"], False),
        (["089 1234", "030 5678"], False),
    ],
)
def test_two_numbers_in_each_text_are_told_from_one(texts, are_pairs):
    expected = f"two numbers in each text, such as {texts[0]!r}" if are_pairs else ""
    assert _what(*texts) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ["€12.30", "$45", "CHF 12", "¥1,200"],
        ["12.30 EUR", "45 USD", "12 CHF", "1200 JPY"],
        ["EUR 12.30", "USD 45"],
        ["R$ 12,30", "US$3"],
    ],
)
def test_currencies_are_known_by_their_codes_too(texts):
    assert _what(*texts).startswith("amounts in several currencies or notations")
    assert _what("BMW 320", *texts) == ""


def test_amounts_in_several_currencies_or_notations_are_named():
    found = unread_numbers(["$1.2M", "€350", "5 £"], ())
    assert found.what == "amounts in several currencies or notations, such as '$1.2M' and '€350'"
    assert found.remedy == "write them as numbers"


def test_a_few_other_texts_among_numbers_are_named_and_may_be_codes_with_them():
    found = unread_numbers([*map(str, range(10, 99)), "<5"], ["<5"])
    remedy = "fix these cells, or if they mean no value, in a CSV name them with --null-value"
    assert (found.what, found.remedy, found.may_be_codes) == ("numbers except '<5'", remedy, True)
