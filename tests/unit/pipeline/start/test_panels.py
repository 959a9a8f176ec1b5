"""Which tables follow many things over time; the columns are called as in public tables."""

import numpy as np
import pytest

from slipway.pipeline.start.facts import facts_of
from slipway.pipeline.start.panels import find_panel

RANDOM = np.random.default_rng(7)
PIGS, TIMES = 72, 12


def _found(**columns):
    arrays = {name: np.array(values) for name, values in columns.items()}
    arrays = {
        name: each.astype(object if each.dtype.kind in "UO" else np.float64) for name, each in arrays.items()
    }
    facts = []
    for name, each in arrays.items():
        kind = "text" if each.dtype == object else "int" if (each == np.round(each)).all() else "float"
        facts.append(facts_of(name, kind, each))
    return find_panel(facts, arrays)


def _balanced(groups, times):
    return np.repeat(np.arange(groups), times), np.tile(np.arange(times), groups)


def test_weights_of_pigs_week_after_week_are_a_panel():
    pig, time = _balanced(PIGS, TIMES)
    litter = RANDOM.integers(1, 25, PIGS)[pig]
    assert _found(Pig=4601 + pig, Litter=litter, Time=time + 1, Weight=RANDOM.normal(size=len(pig))) == (
        "Pig",
        "Time",
    )


@pytest.mark.parametrize("order", ["by group", "by time", "backwards"])
def test_the_file_may_be_sorted_by_group_or_by_time(order):
    family, year = _balanced(60, 8)
    if order == "by time":
        rows = np.lexsort([family, year])
        family, year = family[rows], year[rows]
    if order == "backwards":
        family, year = family[::-1], year[::-1]
    names = np.array([f"family {number}" for number in family])
    assert _found(family=names, year=1990 + year, x=RANDOM.normal(size=480)) == ("family", "year")


def test_the_things_may_be_numbered_with_fractions():
    family, year = _balanced(60, 8)
    facts = [facts_of("firm", "float", family + 1.0), facts_of("year", "int", 1990.0 + year)]
    assert find_panel(facts, {"firm": family + 1.0, "year": 1990.0 + year}) == ("firm", "year")


def test_some_times_may_be_missing_of_some_groups_and_there_may_be_more_times_than_groups():
    firm, year = _balanced(40, 10)
    there = RANDOM.random(len(firm)) < 0.5
    assert _found(firm=100 + firm[there], year=2000 + year[there]) == ("firm", "year")
    country, day = _balanced(22, 28)
    days = (np.datetime64("2020-01-01") + day).astype(str)
    assert _found(country=country, date=days) == ("country", "date")


ROWS = 1200
YEARS = 2000 + np.sort(RANDOM.integers(0, 15, ROWS))
MAKES = np.array([f"make {number}" for number in RANDOM.integers(0, 60, ROWS)])


@pytest.mark.parametrize(
    "columns",
    {
        "makes of cars, sorted by year": {"make": MAKES, "year": YEARS},
        "makes of cars as they come": {"make": MAKES, "year": RANDOM.permutation(YEARS)},
        "makes, sorted by name": {"make": np.sort(MAKES), "year": RANDOM.permutation(YEARS)},
        "colours, and a number of each row": {"colour": MAKES, "row": np.arange(ROWS)},
        "towns of sales, day by day": {"town": MAKES, "day": np.arange(ROWS) // 3},
        "a category that follows a sorted number": {"grade": np.arange(ROWS) // 20, "depth": np.arange(ROWS)},
        "few groups": {"group": np.repeat(np.arange(15), 20), "wave": np.tile(np.arange(20), 15)},
        "few rows": {"pig": np.repeat(np.arange(24), 2), "time": np.tile(np.arange(2), 24)},
        "groups that a model learns each by itself": {
            "store": np.repeat(np.arange(25), 40),
            "week": np.tile(np.arange(40), 25),
        },
        "years alone": {"year": np.repeat(np.arange(30), 19), "rank": np.tile(np.arange(19), 30)},
        "constant": {"colour": MAKES, "one": np.ones(ROWS)},
    }.items(),
    ids=lambda each: each[0],
)
def test_categories_are_no_panel(columns):
    assert _found(**columns[1]) is None


def test_infinite_numbers_are_no_time():
    firm, year = _balanced(40, 10)
    rate = np.where(year < 2, np.inf, year + 0.5)
    assert _found(firm=100 + firm, period=rate, x=RANDOM.normal(size=400)) is None


def test_many_columns_are_not_all_tried():
    many = {f"c{number}": RANDOM.integers(0, 100, 600) for number in range(300)}
    assert _found(**many) is None
