import numpy as np
import pytest

from slipway.pipeline.start.value_formats import (
    detect_value_formats,
    distinct_texts,
    maybe_thousands,
    whole_days,
)


def _forms(values, *, has_types=False, **others):
    columns = {"x": values, **others}
    arrays = {name: np.array(each, dtype=object) for name, each in columns.items()}
    return detect_value_formats(distinct_texts(arrays), has_types=has_types)


@pytest.mark.parametrize(
    ("values", "number", "words"),
    [
        (["1,234", "12", "5,000,000"], {"thousands": ","}, "written as 1,234"),
        (["1,234", "2,345"], {"thousands": ","}, "',' read as the thousands separator"),
        (["0,123", "1,500"], {"decimal": ","}, "written as 0,123"),
        (["0.50", "1\u2019234.50"], {"thousands": "'"}, "written as 1\u2019234.50"),
        (["0.50", "1,234.50"], {"thousands": ","}, "written as 1,234.50"),
        (["-0,53", "1.234,56"], {"decimal": ",", "thousands": "."}, "written as 1.234,56"),
        (["1,5", "12"], {"decimal": ","}, "written as 1,5"),
        (["0,8474337369372327", "-12,5", "5,5e-05"], {"decimal": ","}, "written as 0,8474337369372327"),
        (
            ["950", *(f"{n}.500" for n in range(1, 40))],
            {"decimal": ",", "thousands": "."},
            "written as 1.500, '.' read as the thousands separator",
        ),
        (
            ["950 €", *(f"{n}.500 €" for n in range(1, 40))],
            {"decimal": ",", "thousands": ".", "unit": "€"},
            "written as 1.500 €, '.' read as the thousands separator",
        ),
        (["$12.50", "$1,200", None], {"thousands": ",", "unit": "$"}, "written as $1,200"),
        (["1.234,50 €", "7,00 €"], {"decimal": ",", "thousands": ".", "unit": "€"}, "written as 1.234,50 €"),
        (["12%", "3 %", "?"], {"unit": "%"}, "? for no value"),
        (
            ["$7", "($1,234.50)"],
            {"thousands": ",", "unit": "$"},
            "written as $7, negative ones as ($1,234.50)",
        ),
        (["$7", "$(5)"], {"unit": "$"}, "negative ones as $(5)"),
        (["1:05 PM", "12:10 am"], {"clock": True}, "written as 12:10 am, read as 600 seconds"),
        (["7", "(5)"], {}, "written as 7, negative ones as (5)"),
        (["3.1", "\u22125.2"], {}, "written as 3.1, negative ones as \u22125.2"),
        (
            ["1.234,56-", "12,00"],
            {"decimal": ",", "thousands": "."},
            "written as 12,00, negative ones as 1.234,56-",
        ),
        (["7", "5.5-"], {}, "written as 7, negative ones as 5.5-"),
        (["(0,5)", "1,25"], {"decimal": ","}, "negative ones as (0,5)"),
        (["CHF 5", "7 CHF"], {"unit": "CHF"}, "written as CHF 5"),
        (["Rs. 300", "Rs. 1,200"], {"thousands": ",", "unit": "Rs."}, "written as Rs. 1,200"),
        (["kr 12.50", "kr 7"], {"unit": "kr"}, "written as kr 12.50"),
        (["US$12.50", "-US$7"], {"unit": "US$"}, "written as US$12.50"),
        (["R$ 1.200,50", "R$ 7,00"], {"decimal": ",", "thousands": ".", "unit": "R$"}, "as R$ 1.200,50"),
        ([f"{n},5 °C" for n in range(-5, 9)], {"decimal": ",", "unit": "°C"}, "written as -5,5 °C"),
        ([f"{n}.5° N" for n in range(40, 55)], {"unit": "° N"}, "written as 40.5° N"),
        (["₹99,500", "₹12,34,567"], {"thousands": ",", "unit": "₹"}, "written as ₹99,500"),
        (["+1.25%", "-0.5%", "0%"], {"unit": "%"}, "written as +1.25%"),
        (["+$5.1", "-$0.50"], {"unit": "$"}, "written as +$5.1"),
        ([f"{n}.5℃" for n in range(9, 22)], {"unit": "℃"}, "written as 9.5℃"),
        ([f"{n},5\u00a0%" for n in range(9)], {"decimal": ",", "unit": "%"}, "written as 0,5\xa0%"),
        ([f"{n}\u202fkg" for n in range(150, 170)], {"unit": "kg"}, "written as 150\u202fkg"),
        ([*(f"{n}cm" for n in range(150, 170)), "NA"], {"unit": "cm"}, "written as 150cm, NA for no value"),
        (["59:10", "1:02:33"], {"clock": True}, "written as 1:02:33, read as 3753 seconds"),
        (["45m", "2h 50m", "3h"], {"clock": True}, "written as 2h 50m, read as 10200 seconds"),
        (["0 days 00:10:00", "n/a"], {"clock": True}, "read as 600 seconds, n/a for no value"),
    ],
)
def test_numbers_are_recognised_however_they_are_written(values, number, words):
    found = _forms(values)
    assert found.numbers == {"x": number}
    assert words in found.words["x"]


@pytest.mark.parametrize("word", ["null bhp", "NaN bhp", "n/a bhp"])
def test_a_word_for_no_value_may_have_the_unit_of_the_numbers(word):
    found = _forms([*(f"{n}.25 bhp" for n in range(20)), word])
    assert (found.numbers, found.null_values) == ({"x": {"unit": "bhp"}}, (word,))
    assert found.words["x"] == f"written as 0.25 bhp, {word} for no value"
    assert _forms(["none given", "good", "bad"]) == _forms(["good", "bad"])


@pytest.mark.parametrize("value", ["{}", "{}.5 bhp", "2024-03-{}", "1:{}"])
def test_other_words_behind_a_word_for_no_value_are_a_text(value):
    assert _forms([*(value.format(n) for n in range(10, 30)), "none found"]).words == {}


@pytest.mark.parametrize(
    "codes", [["48d12m30s", "7d1m9s"], ["3D2M", "1D1M"], ["40M61S", "50M26S", "76M"], ["5m", "20m"]]
)
def test_what_only_looks_like_durations_is_a_text(codes):
    assert _forms(codes).numbers == {}


WITH_POINT = [f"{n}.500" for n in range(1, 40)]


@pytest.mark.parametrize("other", ["1250", "0.125", "1.5", "2.500"])
def test_a_point_separates_no_thousands_beside_other_numbers(other):
    assert not _forms([other, *WITH_POINT]).numbers


@pytest.mark.parametrize("comma", ["12,5", "-0,75", "1.234,5", "1.234.567"])
def test_a_point_separates_thousands_beside_a_column_with_decimal_commas(comma):
    found = _forms(["950", "1.250"], price=[comma, "7"])
    assert found.numbers["x"] == {"decimal": ",", "thousands": "."}
    assert found.words["x"] == "written as 1.250, '.' read as the thousands separator"
    assert "plain" not in _forms(["950", "1.250"], price=[comma, "7"], plain=["950", "12"]).numbers


@pytest.mark.parametrize("point", ["12.5", "0.125", "1,234.5", "1.2345"])
def test_a_point_separates_no_thousands_if_any_column_has_decimal_points(point):
    assert "x" not in _forms(["950", "1.250"], price=["12,5", "7"], other=[point, "7"]).numbers


@pytest.mark.parametrize(
    ("numbers", "may_be"),
    [
        ([950, np.nan, *map(float, WITH_POINT)], True),
        ([-950, *map(float, WITH_POINT)], True),
        (list(map(float, WITH_POINT)), False),
        ([950, *map(float, WITH_POINT[:29])], False),
        ([1250, *map(float, WITH_POINT)], False),
        ([950, 0.125, *map(float, WITH_POINT)], False),
        ([950, 1.2345, *map(float, WITH_POINT)], False),
    ],
)
def test_numbers_that_may_be_written_with_thousands_are_looked_at_as_texts(numbers, may_be):
    assert maybe_thousands({"x": np.array(numbers, float)}) == (["x"] if may_be else [])


@pytest.mark.parametrize(
    "values",
    [
        ["5A", "7A"],
        [f"{n} kg" for n in range(20)] + ["12 lb"],
        [f"0{n}A" for n in range(20)],
        [f"{n} kg" for n in range(20)] + ["kg"],
    ],
)
def test_codes_and_numbers_in_several_units_are_no_numbers(values):
    assert not _forms(values).numbers


def test_numbers_with_and_without_a_percent_sign_are_not_read_alike():
    assert not _forms(["12.5%", "0.5", "7%"]).numbers
    assert _forms(["12.5%", "0", "0.0", "7%"]).numbers == {"x": {"unit": "%"}}


def test_a_word_for_no_value_among_numbers_is_named_and_holds_for_the_whole_csv():
    found = _forms(["1", "2.5", "NA", "?"], region=["NA", "EU"], name=["a", "b"])
    assert (found.null_values, found.numbers) == (("?", "NA"), {})
    assert found.words == {
        "x": "NA and ? for no value",
        "region": "NA for no value, as in the columns of numbers",
    }
    assert found.shared == {"region": {"NA": "x"}}


def test_words_and_blanks_for_no_value_are_written_down_as_the_csv_has_them():
    found = _forms([" 1", " 2.5", " NA", "NA", "   "])
    assert (found.null_values, found.numbers) == (("   ", " NA", "NA"), {})
    assert sorted(found.words["x"].removesuffix(" for no value").split(" and ")) == ["NA", "blanks"]
    assert _forms([" 1", " NA", " "], has_types=True).null_values == ("NA",)


def test_a_format_removes_the_blanks_around_dates():
    assert _forms([" 2024-01-31", " 2024-02-01"]).dates == {"x": "%Y-%m-%d"}
    assert _forms(["2024-01-31 ", "2024-02-01"]).dates == {"x": "%Y-%m-%d"}
    assert _forms([" 2024-01-31 10:20:30"]).dates == {"x": "%Y-%m-%d %H:%M:%S"}
    assert _forms(["2024-01-31", "2024-02-01"]).dates == {}


def test_a_format_makes_no_value_of_empty_texts_among_dates_where_files_have_types():
    found = _forms(["2024-01-31", "", "2024-02-01"], has_types=True)
    assert (found.dates, found.words) == ({"x": "%Y-%m-%d"}, {"x": "empty texts for no value"})
    assert _forms(["2024-01-31 10:20:30", " "], has_types=True).dates == {"x": "%Y-%m-%d"}
    assert _forms(["2024-01-31", " 2024-02-01"], has_types=True).dates == {"x": "%Y-%m-%d"}
    assert _forms(["2024-01-31", "2024-02-01"], has_types=True).dates == {}
    assert _forms(["a", ""], has_types=True).words == {}


@pytest.mark.parametrize(
    "word",
    [
        *("\\N", "<NA>", "NaT", "(null)", "[NULL]", "---", "No data"),
        *("#DIV/0!", "#VALUE!", "#REF!", "#NV", "#¡DIV/0!", "#¿NOMBRE?", "#NUL!", "#RIF!", "#NÚM!"),
    ],
)
def test_what_databases_pandas_and_sheets_write_is_a_word_for_no_value(word):
    found = _forms(["1", "2.5", word])
    assert (found.null_values, found.words) == ((word,), {"x": f"{word} for no value"})


def test_numbers_in_quotes_are_named_where_files_have_types():
    assert _forms(["1", "2.5"], has_types=True).numbers == {"x": {}}
    assert not _forms(["1", "2.5"]).words


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["01.03.2021", "13.04.2021"], "%d.%m.%Y"),
        (["2012/01/01", "2012/12/31"], "%Y/%m/%d"),
        (["3/14/2021", "1/2/2021"], "%m/%d/%Y"),
        (["14/3/2021", "1/2/2021"], "%d/%m/%Y"),
        (["3/14/2021 5:06"], "%m/%d/%Y %H:%M"),
        (["Jan 1 2000", "Feb 3 2001"], "%b %d %Y"),
        (["1-Feb-1999"], "%d-%b-%Y"),
        (["Jan-1-1995", "Dec-12-1996"], "%b-%d-%Y"),
        (["2020-Jan-05"], "%Y-%b-%d"),
        (["2020-11", "2021-02"], "%Y-%m"),
        (["11/2020"], "%m/%Y"),
        (["Mar 2020", "May 2021"], "%b %Y"),
        (["Mar-20"], "%b-%y"),
        (["2021-1-3"], "%Y-%m-%d"),
        (["3/14/2021, 5:06 AM", "12/31/2021, 11:59 PM"], "%m/%d/%Y, %I:%M %p"),
        (["3/14/2021, 5:06:07 AM"], "%m/%d/%Y, %I:%M:%S %p"),
        (["14.3.2021, 05:06:07"], "%d.%m.%Y, %H:%M:%S"),
        (["3/14/2021 5:06 pm", "3/15/2021 11:06 am"], "%m/%d/%Y %I:%M %p"),
        (["2021-03-14 05:06PM"], "%Y-%m-%d %I:%M%p"),
        (["20240131", "20240229", "19990101", "20501231", "20010203"], "%Y%m%d"),
        (["01.03.2021", "31.12.9999"], "%d.%m.%Y"),
    ],
)
def test_dates_are_recognised_in_the_usual_orders(values, form):
    assert _forms(values).dates == {"x": form}


def test_centuries_that_two_digits_of_a_year_are_read_as_are_named():
    found = _forms(["31.12.68", "01.01.69", "05.06.01"])
    assert (found.dates, found.words) == (
        {"x": "%d.%m.%y"},
        {"x": "dates as 31.12.68, read as of 1969 to 2068"},
    )


def test_dates_that_could_be_read_in_two_orders_are_reported_with_the_other_one():
    found = _forms(["3/4/2021", "5/6/2021"])
    assert found.dates == {"x": "%m/%d/%Y"}
    words = "assuming that the month comes first (otherwise write '%d/%m/%Y' in data.dates)"
    assert words in found.words["x"]
    found = _forms(["03-04-2021", "05-06-2021"])
    assert found.dates == {"x": "%d-%m-%Y"}
    assert "the day comes first (otherwise write '%m-%d-%Y' in data.dates)" in found.words["x"]


@pytest.mark.parametrize("other", [["14/3/2021"], ["14.3.2021"]])
def test_dates_that_could_be_read_in_two_orders_follow_the_order_of_other_columns(other):
    found = _forms(["3/4/2021", "5/6/2021", "?"], paid=other)
    assert found.dates["x"] == "%d/%m/%Y"
    assert found.words["x"] == (
        "dates as 3/4/2021, the day first, as in other columns (otherwise write '%m/%d/%Y' in data.dates), "
        "? for no value"
    )
    assert _forms(["3-4-2021"], paid=["3/14/2021"]).dates["x"] == "%m-%d-%Y"
    assert _forms(["3/4/2021"], paid=other, sold=["3/14/2021"]).dates["x"] == "%m/%d/%Y"


def test_dates_that_could_be_read_in_two_orders_follow_first_days_of_months_in_other_columns():
    months = [f"01/0{month}/2021" for month in range(2, 9)]
    assert _forms(["03/04/2021"], month=months).dates == {"x": "%d/%m/%Y", "month": "%d/%m/%Y"}
    found = _forms(["03/04/2021"], month=months, sold=["3/14/2021"])
    assert set(found.dates.values()) == {"%m/%d/%Y"}
    assert _forms(["03-04-2021"], month=["02/01/2021", "03/01/2021", "04/01/2021"]).dates["x"] == "%m-%d-%Y"


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (["01/02/2021", "01/03/2021", "01/04/2022"], "%d/%m/%Y"),
        (["02/01/2021", "03/01/2021", "04/01/2022"], "%m/%d/%Y"),
        (["02-01-2021", "03-01-2021", "04-01-2022"], "%m-%d-%Y"),
        (["01/01/2021", "01/01/2022", "01/01/2023"], "%m/%d/%Y"),
        (["01/02/2021", "01/03/2021"], "%m/%d/%Y"),
    ],
)
def test_dates_of_the_first_day_of_each_month_show_which_is_the_day(values, form):
    found = _forms(values)
    assert found.dates == {"x": form}
    assert "assuming that the" in found.words["x"]


@pytest.mark.parametrize(
    "values",
    [
        ["2021-01-01"],
        ["2021-01-01T10:00:00Z"],
        ["007", "012"],
        ["+49123", "+49124"],
        ["12345678901234567"],
        ["a", "1"],
        ["1.2.3.4"],
        ["(1)", "(2)"],
        ["1-", "2-"],
        ["(07)", "7"],
        ["NA"],
        [],
        ["31.02.2021", "14.13.2021"],
    ],
)
def test_ids_plain_dates_and_texts_stay_what_they_are(values):
    assert not _forms(values).words


@pytest.mark.parametrize("text", ["1" * 200_000 + "x", "1, " * 70_000 + "#"], ids=["digits", "groups"])
def test_long_text_that_begins_like_a_date_is_seen_through_in_one_pass(text):
    """One that is split in each possible way takes longer than a test may."""
    assert not _forms([text, "2021-01-01"]).words


def test_vectors_written_as_texts_are_not_tried_as_dates(monkeypatch):
    """Each of 300 formats goes over all of them: of fifty with a million characters each, for an hour."""
    monkeypatch.setattr("slipway.pipeline.start.value_formats.plain_dates", None)
    assert not _forms([f"0.{row}, " * 30 + "0.5" for row in range(60)]).words


def test_only_whole_numbers_that_are_all_dates_are_days():
    day = [20240131, 20240229, 19990101, 20501231, 20010203]
    columns = {
        "day": [*day, float("nan")],
        "no_end": [*day, 99991231],
        "only_no_end": [*day[:4], 99991231],
        "one_is_none": [*day, 20010230],
        "few": [*day[:4], day[0]],
        "ids": range(20240101, 20240161),
    }
    assert set(whole_days({name: np.array(each, dtype=float) for name, each in columns.items()})) == {
        "day",
        "no_end",
    }
