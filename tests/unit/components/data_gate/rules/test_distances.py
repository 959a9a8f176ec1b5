"""Distances between distributions, and what chance makes of them."""

import math

import numpy as np
import pytest

from slipway.components.data_gate.rules.distances import (
    jensen_shannon,
    jensen_shannon_by_chance,
    l_infinity,
    l_infinity_by_chance,
    most_grown,
    scale,
)
from slipway.components.data_gate.statistics import Distribution


@pytest.mark.parametrize(
    ("first", "second", "distance", "value"),
    [
        ({"a": 1}, {"a": 1}, 0.0, "a"),
        ({"a": 1, "b": 1}, {"a": 10, "b": 10}, 0.0, "a"),
        ({"a": 3, "b": 1}, {"a": 1, "b": 1}, 0.25, "a"),
        ({"a": 1}, {"b": 1}, 1.0, "a"),
        ({"a": 1}, {"a": 2, "b": 1}, 1 / 3, "a"),
        ({"a": 8, "b": 1, "c": 1}, {"a": 1}, 0.2, "a"),
        ({}, {"a": 1}, 0.0, ""),
        ({}, {}, 0.0, ""),
    ],
)
def test_l_infinity_is_the_largest_difference_of_a_share(first, second, distance, value):
    found, worst = l_infinity(first, second)
    assert found == pytest.approx(distance)
    assert worst == value


def test_what_chance_reaches_is_that_of_the_formulas():
    for rows in ((100, 400), (400, 100)):
        assert l_infinity_by_chance(0.5, rows) == pytest.approx(4 * math.sqrt(0.25 * 0.0125) + 0.01)
        assert jensen_shannon_by_chance(10, rows) == pytest.approx(0.058543, abs=1e-6)
        assert jensen_shannon_by_chance(1, rows) == jensen_shannon_by_chance(2, rows)
        assert jensen_shannon_by_chance(2, rows) == pytest.approx(0.015006, abs=1e-6)


def test_cells_that_hold_nothing_are_not_counted(feature):
    both = feature("x", [0, 1] * 50).distribution
    assert jensen_shannon(both, both) == (0.0, 3)  # at 0, between, and at 1


def test_cell_that_grew_most_may_be_the_first(feature):
    then = feature("x", np.arange(100.0)).distribution
    now = feature("x", np.append(np.arange(100.0), np.full(100, -5.0))).distribution
    (low, high), (part, before) = most_grown(now, then)
    assert (low, high, before) == (-math.inf, -5.0, 0.0)
    assert part == pytest.approx(0.5, abs=0.02)


def test_factor_shows_at_five_deciles_that_are_not_nothing():
    below = np.array([0, 0.45, 0.5, 0.9, 1])
    points = np.array([0, 0, 1, 5, 6.0])  # the deciles are 0 0 0 0 1 2 3 4 5
    for factor in (2.0, 0.5):
        assert scale(Distribution(points, below), Distribution(points * factor, below)) == pytest.approx(
            factor
        )
    four = np.array([0, 0.55, 0.6, 0.9, 1])
    assert scale(Distribution(points, four), Distribution(points * 2, four)) == 1.0
    assert scale(Distribution(points, below), Distribution(points * 2, four)) == 1.0
    filled = np.array([1, 1, 2, 10, 12.0])
    assert scale(Distribution(points, below), Distribution(filled, below)) == pytest.approx(2.0)


def test_jensen_shannon_is_nothing_for_equal_and_one_for_disjoint_values(feature):
    low, high = (
        feature("x", np.arange(1000.0)).distribution,
        feature("x", np.arange(5000.0, 6000)).distribution,
    )
    assert jensen_shannon(low, low)[0] == pytest.approx(0)
    assert jensen_shannon(low, high)[0] == pytest.approx(1)
    assert jensen_shannon(high, low)[0] == pytest.approx(1)


def test_jensen_shannon_of_a_shifted_normal_is_what_the_integral_says(feature):
    # Two normals one standard deviation apart: 0.1103 bits by numerical integration over the real line.
    grid = np.linspace(-12, 13, 200_001)
    p, q = (np.exp(-((grid - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (0, 1))
    middle = (p + q) / 2
    wanted = np.trapezoid(p * np.log2(p / middle) + q * np.log2(q / middle), grid) / 2
    rng = np.random.default_rng(0)
    first, second = (feature("x", rng.normal(mean, 1, 200_000)).distribution for mean in (0, 1))
    assert jensen_shannon(first, second)[0] == pytest.approx(wanted, rel=0.05)


DRAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tail": lambda rng, n: rng.lognormal(0, 2, n),
    "hours": lambda rng, n: rng.integers(0, 24, n),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.7, 0, rng.exponential(size=n)),
    "yes or no": lambda rng, n: rng.random(n) < 0.2,
    "few places": lambda rng, n: rng.choice(
        [41.88, 41.9, 41.95, 41.98, 42.0], n, p=[0.4, 0.3, 0.2, 0.05, 0.05]
    ),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("rows", [(100, 50), (1000, 500), (10_000, 5_000)])
@pytest.mark.parametrize("seed", range(8))
def test_two_samples_of_one_population_stay_within_limit_and_chance(feature, name, rows, seed):
    rng = np.random.default_rng(seed)
    first, second = (feature("x", DRAWS[name](rng, n)).distribution for n in rows)
    distance, cells = jensen_shannon(first, second)
    assert distance <= 0.01 + jensen_shannon_by_chance(cells, rows)


@pytest.mark.parametrize("rows", [(50, 30), (1000, 500)])
@pytest.mark.parametrize("seed", range(20))
def test_shares_of_two_samples_of_one_population_stay_within_chance(rows, seed):
    rng = np.random.default_rng(seed)
    draws = [rng.multinomial(n, [0.5, 0.3, 0.1, 0.05, 0.05]) for n in rows]
    counts = [dict(zip("abcde", map(int, draw), strict=True)) for draw in draws]
    distance, worst = l_infinity(*counts)
    share = sum(each[worst] / n for each, n in zip(counts, rows, strict=True)) / 2
    assert distance <= l_infinity_by_chance(share, rows)


def test_chance_allows_anything_where_there_are_no_rows_and_less_the_more_there_are():
    assert l_infinity_by_chance(0.5, (0, 10)) == jensen_shannon_by_chance(10, (10, 0)) == 1.0
    assert l_infinity_by_chance(0.5, (100, 100)) > l_infinity_by_chance(0.5, (10_000, 100))
    assert jensen_shannon_by_chance(10, (100, 100)) > jensen_shannon_by_chance(10, (10_000, 100))


@pytest.mark.parametrize("factor", [0.01, 1 / 60, 0.621, 1.609, 2.54, 60, 100, 1000])
@pytest.mark.parametrize("name", ["normal", "heavy tail", "mostly zero"])
def test_change_of_units_shows_as_a_factor(feature, factor, name):
    rng = np.random.default_rng(1)
    before = DRAWS["heavy tail" if name == "heavy tail" else name](rng, 20_000) + (
        30 if name == "normal" else 0
    )
    after = rng.permutation(before)[:10_000] * factor
    found = scale(feature("x", before).distribution, feature("x", after).distribution)
    if name == "mostly zero":
        assert found == 1.0  # too few deciles are not zero to be sure
    else:
        assert found == pytest.approx(factor, rel=0.05)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", DRAWS)
def test_no_factor_shows_where_there_is_none(feature, seed, name):
    rng = np.random.default_rng(seed)
    first, second = (feature("x", DRAWS[name](rng, n)).distribution for n in (4_000, 2_000))
    assert 0.8 < scale(first, second) < 1.25


def test_a_shift_is_no_factor(feature):
    values = np.random.default_rng(0).normal(30, 10, 10_000)
    assert scale(feature("x", values).distribution, feature("x", values + 30).distribution) == 1.0
