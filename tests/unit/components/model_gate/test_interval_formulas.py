"""Bounds of metrics, against published and simulated numbers."""

import random

import pytest

from slipway.components.model_gate.interval_formulas import (
    Spread,
    auc_bounds,
    auc_of_chance,
    least_difference,
    normal_quantile,
    proportion_bounds,
    student_quantile,
)


@pytest.mark.parametrize(("confidence", "z"), [(0.95, 1.6449), (0.975, 1.96), (0.99, 2.3263), (0.75, 0.6745)])
def test_quantiles_are_those_of_the_tables(confidence, z):
    assert normal_quantile(confidence) == pytest.approx(z, abs=1e-4)


# Newcombe (1998), Two-sided confidence intervals for the single proportion, table I, method 3.
@pytest.mark.parametrize(
    ("hits", "rows", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_bounds_of_a_share_are_the_published_ones(hits, rows, low, high):
    found = proportion_bounds(hits / rows, rows, confidence=0.975)
    assert found == pytest.approx((low, high), abs=1e-4)


# Newcombe (1998), Interval estimation for the difference between proportions, table II, method 10.
@pytest.mark.parametrize(
    ("first", "second", "low"),
    [((56, 70), (48, 80), 0.0524), ((9, 10), (3, 10), 0.1705), ((10, 10), (0, 10), 0.6075)],
)
def test_least_difference_is_the_published_one(first, second, low):
    def with_bounds(hits, rows):
        return (hits / rows, *proportion_bounds(hits / rows, rows, confidence=0.975))

    assert least_difference(with_bounds(*first), with_bounds(*second)) == pytest.approx(low, abs=1e-4)


def simulated_area(drawn, positives, negatives, shift):
    scores = [(drawn.gauss(shift, 1), True) for _ in range(positives)]
    scores += [(drawn.gauss(0, 1), False) for _ in range(negatives)]
    ranks = [rank for rank, (_, positive) in enumerate(sorted(scores), start=1) if positive]
    return (sum(ranks) - positives * (positives + 1) / 2) / (positives * negatives)


@pytest.mark.parametrize(("shift", "area"), [(0.0, 0.5), (1.0, 0.7602), (2.0, 0.9214)])
def test_bounds_of_an_area_hold_the_true_one_as_often_as_they_say(shift, area):
    drawn = random.Random(7)  # noqa: S311 (a simulation)
    found = [simulated_area(drawn, 40, 120, shift) for _ in range(400)]
    held = sum(auc_bounds(value, 40, 120, confidence=0.95)[0] <= area for value in found) / len(found)
    assert 0.92 <= held <= 0.985


# By the formulas of the publications, by hand: with few rows each term of them shows.
@pytest.mark.parametrize(
    ("auc", "low", "high"),
    [(0.75, 0.6169, 0.8831), (1.0, 0.9456, 1.0), (0.0, 0.0, 0.0454), (0.95, 0.8838, 1.0)],
)
def test_bounds_of_an_area_are_those_of_hanley_and_mcneil(auc, low, high):
    assert auc_bounds(auc, 3, 5, confidence=0.75) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("positives", "negatives", "confidence", "limit"), [(3, 5, 0.75, 0.6508), (1, 1, 0.95, 1.0)]
)
def test_limit_of_chance_is_that_of_mann_and_whitney(positives, negatives, confidence, limit):
    assert auc_of_chance(positives, negatives, confidence=confidence) == pytest.approx(limit, abs=1e-4)


def test_chance_reaches_its_limit_as_often_as_it_says():
    drawn = random.Random(8)  # noqa: S311 (a simulation)
    limit = auc_of_chance(40, 120, confidence=0.95)
    above = sum(simulated_area(drawn, 40, 120, 0.0) > limit for _ in range(400)) / 400
    assert 0.03 <= above <= 0.075


@pytest.mark.parametrize("rows", [2, 5, 50, 5000])
def test_perfect_model_is_not_perfectly_sure(rows):
    assert proportion_bounds(1.0, rows, confidence=0.95)[0] < 1
    assert auc_bounds(1.0, rows, rows, confidence=0.95)[0] < 1


# Student's own table, two-sided 90 and 95 %.
@pytest.mark.parametrize(
    ("confidence", "freedom", "t"),
    [(0.95, 1, 6.314), (0.95, 10, 1.812), (0.975, 4, 2.776), (0.95, 63, 1.669)],
)
def test_quantiles_of_a_measured_spread_are_student_s(confidence, freedom, t):
    assert student_quantile(confidence, freedom) == pytest.approx(t, abs=1e-3)
    assert Spread(0.5, freedom).half(confidence) == pytest.approx(t / 2, abs=1e-3)
