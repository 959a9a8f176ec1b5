import numpy as np
import pytest

from slipway.pipeline.start.facts import facts_of, likely_epoch_unit


def _texts(*values):
    return np.array(values, dtype=object)


def _numbers(*values):
    return np.array(values, dtype=np.float64)


def test_counts_values_and_empty_cells():
    facts = facts_of("plan", "text", _texts("a", None, "b", "a"))
    assert (facts.rows, facts.missing, facts.distinct, facts.present) == (4, 1, 2, 3)
    assert list(facts.counts.items()) == [("a", 2), ("b", 1)]
    assert facts.missing_share == 0.25


def test_equal_counts_come_in_the_order_of_the_values():
    assert list(facts_of("plan", "text", _texts("b", "a", "c")).counts) == ["a", "b", "c"]


def test_numbers_have_a_range_and_a_median():
    facts = facts_of("fare", "float", _numbers(1.5, np.nan, 9.0, 2.0))
    assert (facts.missing, facts.least, facts.greatest, facts.median) == (1, 1.5, 9.0, 2.0)


def test_whole_numbers_stay_whole():
    assert list(facts_of("n", "int", _numbers(3, 1, 3)).counts) == [3, 1]


@pytest.mark.parametrize("kind", ["int", "float", "text"])
def test_an_empty_column_has_no_value(kind):
    values = _texts(None, None) if kind == "text" else _numbers(np.nan, np.nan)
    facts = facts_of("x", kind, values)
    assert (facts.present, facts.distinct, facts.counts, facts.moment) == (0, 0, {}, "")


@pytest.mark.parametrize(
    ("values", "moment"),
    [
        (["2024-03-01", "1999-12-31"], "date"),
        (["2024-03-01 10:20", "2024-03-02"], "time"),
        (["2024-03-01T10:20:30.5Z", "2024-03-01T10:20:30+01:00"], "time"),
        (["2024-03-01 10:20:30.123456+00", "2024-03-01 10:20:30+05:30"], "time"),
        (["2024-03-01 10:20:30 UTC", "2024-03-01 10:20:30.123 UTC"], "time"),
        (["2024-03-01 10:20:30 -0500", "2024-03-01 10:20:30 +05:30"], "time"),
        (["2024-03-01", "soon"], ""),
        (["1234-56-78", "4711-08-15", "2024-03-01"], ""),
        (["0000-00-00", "2024-13-01", *(f"2024-03-{day:02}" for day in range(1, 20))], "date"),
        (["01.03.2024"], ""),
        (["2024-03-01\nimport os"], ""),
    ],
)
def test_texts_are_dates_only_where_all_of_them_are(values, moment):
    assert facts_of("day", "text", _texts(*values)).moment == moment


@pytest.mark.parametrize(
    ("name", "values", "moment"),
    [
        ("trip_start_timestamp", [1.4e9, 1.5e9], "seconds"),
        ("created_at", [1.4e9], "seconds"),
        ("createdAt", [1.4e12, 1.5e12], "milliseconds"),
        ("event_ts", [1.4e15, 1.5e15], "microseconds"),
        ("timestamp", [1.4e18, 1.5e18], "nanoseconds"),
        ("timestamp", [1.4e9, 1.5e12], ""),
        ("combats", [1.4e12], ""),
        ("population", [1.4e9], ""),
        ("timestamp", [5, 17], ""),
        ("expiry_date", [1.26e9, 4.07e9], "seconds"),  # 2009 to 2098, while no duration is that long
        ("event_time_ms", [1.4e12, 1.5e12], "milliseconds"),
        # Durations of 17 to 68 minutes in nanoseconds.
        ("trip_time", [1.02e12, 4.05e12], ""),
        ("trip_time_ns", [1.2e12, 1.3e12], ""),
        ("elapsedTime", [1.2e12, 1.3e12], ""),
    ],
)
def test_numbers_are_moments_only_where_name_and_range_agree(name, values, moment):
    assert facts_of(name, "int", _numbers(*values)).moment == moment


def test_durations_by_their_type_are_no_moments():
    minutes = _numbers(*(60e9 * n for n in range(20, 40)))
    assert facts_of("trip_time", "int", minutes).moment == "milliseconds"
    facts = facts_of("trip_time", "int", minutes, is_duration=True)
    assert (facts.moment, likely_epoch_unit(facts)) == ("", "")


@pytest.mark.parametrize(
    ("name", "first", "unit"),
    [
        ("created", 1_700_000_000_000, "milliseconds"),
        ("created", 1_700_000_000_000_000, "microseconds"),
        ("created", 1_700_000_000, ""),  # may be anything, such as telephone numbers
        ("ean", 4_006_381_333_931, ""),
        ("created_time", 1_700_000_000_000, ""),  # it is known to be one
    ],
)
def test_numbers_with_another_name_may_be_moments(name, first, unit):
    assert likely_epoch_unit(facts_of(name, "int", _numbers(*range(first, first + 20)))) == unit
    assert likely_epoch_unit(facts_of(name, "int", _numbers(*range(first, first + 19)))) == ""


@pytest.mark.parametrize(
    ("values", "others"),
    [
        ([*(f"${row},000.50" for row in range(1, 40)), "Total", "n/a?"], ("Total", "n/a?")),
        ([*(f"{row}.000,50-" for row in range(1, 40)), "Summe?"], ("Summe?",)),
        ([*(f"{row}" for row in range(100, 140)), "007"], ()),
        ([*"abcdefgh", "1"], ()),
        (["1.2.3.4"] * 30, ()),
        ([], ()),
    ],
)
def test_the_few_texts_among_numbers_are_named_but_not_among_codes(values, others):
    assert facts_of("x", "text", _texts(*values)).others == others


MANY = np.arange(-2.0, 40.0, 0.5).tolist()


@pytest.mark.parametrize(
    ("values", "missing_value_placeholders"),
    [
        ([*MANY, *[-999] * 7], {-999: 7}),
        ([*MANY, *[999.9] * 5], {999.9: 5}),
        ([*range(60), *[-9999] * 5, *[-999] * 6, *[9999] * 7], {-9999: 5, -999: 6, 9999: 7}),
        ([*range(5000), *[-999] * 5], {-999: 5}),
        ([*MANY, *[-200] * 9], {-200: 9}),
        ([*MANY, *[-999] * 4], {}),  # two strays are values
        ([*range(60), *[99] * 9], {}),
        ([*range(-2000, 2000), *[-999] * 9], {}),
        ([*MANY, *[200] * 9], {}),  # a price, or a cap
        ([0, 1] * 50 + [-9] * 50, {}),
        ([*range(60), *[-1] * 5], {-1: 5}),
        ([*range(7), *[-9] * 5], {-9: 5}),
        ([*range(60), *[-1] * 4], {}),
        ([*range(60), *[-2] * 9], {}),  # a difference, or degrees
        ([*range(-2, 60), *[-1] * 9], {}),
        ([0] * 90 + MANY, {}),
    ],
)
def test_numbers_that_look_like_no_value_are_found(values, missing_value_placeholders):
    assert facts_of("x", "float", _numbers(*values)).missing_value_placeholders == missing_value_placeholders


DAYS = [f"2024-{1 + row % 12:02}-{1 + row % 28:02}" for row in range(80)]


@pytest.mark.parametrize(
    ("values", "placeholders"),
    [
        ([*DAYS, *["9999-12-31"] * 5], {"9999-12-31": 5}),
        ([*DAYS, *["0000-00-00"] * 6, *["9999-12-31"] * 5], {"0000-00-00": 6, "9999-12-31": 5}),
        ([*(f"{day} 10:00:00" for day in DAYS), *["1900-01-01 00:00:00"] * 9], {"1900-01-01 00:00:00": 9}),
        ([*DAYS, *["9999-12-31"] * 4], {}),  # a few strays are values
        ([*DAYS, *["2024-12-31"] * 50], {}),
        ([*(f"{1930 + row}-05-03" for row in range(80)), *["1900-01-01"] * 9], {}),  # births
        ([*["2024-01-01"] * 9, *["9999-12-31"] * 9], {}),
        ([*DAYS, *["unknown"] * 9], {}),  # no dates
    ],
)
def test_dates_that_look_like_no_value_are_found(values, placeholders):
    assert facts_of("x", "text", _texts(*values)).missing_value_placeholders == placeholders


@pytest.mark.parametrize(
    ("values", "is_whole"), [((1.0, 2.0, np.nan), True), ((1.0, 2.5), False), ((1.0, 1e17), False)]
)
def test_numbers_of_a_float_column_may_be_whole(values, is_whole):
    assert facts_of("id", "float", _numbers(*values)).is_whole is is_whole
