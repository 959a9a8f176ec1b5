import pickle

import numpy as np
import pytest

from slipway.components.evaluator import grouped_sums
from slipway.components.evaluator.grouped_sums import GroupedSums


def whole(values, _digits):
    return np.floor(values)


def added(*rows, most=None):
    sums = GroupedSums(1, most=most, rounded=whole)
    for slice_, value, weight in rows:
        sums.add(np.array([slice_]), np.array([value]), np.array([[weight]]))
    return sums


def content(sums):
    sums.compact()
    return list(zip(sums.slices.tolist(), sums.values.tolist(), sums.sums[:, 0].tolist(), strict=True))


ROWS = [(0, 0.5, 1.0), (1, 0.5, 2.0), (0, 0.25, 4.0), (0, 0.5, 8.0), (1, -0.0, 16.0), (1, 0.0, 32.0)]


def test_rows_of_one_slice_and_value_are_added():
    assert content(added(*ROWS)) == [(0, 0.25, 4.0), (0, 0.5, 9.0), (1, 0.0, 48.0), (1, 0.5, 2.0)]


def test_it_is_the_same_however_often_it_is_brought_together(monkeypatch):
    expected = content(added(*ROWS))
    monkeypatch.setattr(grouped_sums, "_PENDING", 1)
    assert content(added(*ROWS)) == expected
    assert content(pickle.loads(pickle.dumps(added(*ROWS)))) == expected  # noqa: S301


def test_parts_add_up_to_the_whole_though_their_slices_have_other_places():
    one, other = added(*ROWS[:2]), added((1, 0.25, 4.0), (1, 0.5, 8.0), (0, 0.0, 48.0))
    one.merge(other, np.array([1, 0]))
    assert content(one) == content(added(*ROWS))


def test_slice_with_more_different_values_than_that_is_rounded_and_no_other():
    rows = [(0, value / 4, 1.0) for value in range(8)] + [(1, 0.25, 1.0)]
    sums = added(*rows, most=7)
    assert content(sums) == [(0, 0.0, 4.0), (0, 1.0, 4.0), (1, 0.25, 1.0)]
    assert sums.digits == {0: 3}
    sums.add(np.array([0, 1]), np.array([1.75, 0.5]), np.ones((2, 1)))
    assert content(sums) == [(0, 0.0, 4.0), (0, 1.0, 5.0), (1, 0.25, 1.0), (1, 0.5, 1.0)]


def test_rounding_anywhere_rounds_the_whole_slice():
    many = added(*[(0, value / 4, 1.0) for value in range(8)], most=7)
    few = added((2, 0.75, 1.0), (0, 0.75, 1.0), most=7)
    few.merge(many, np.array([2]))
    assert content(few) == [(0, 0.75, 1.0), (2, 0.0, 5.0), (2, 1.0, 4.0)]
    assert few.of_slice(2)[1][:, 0].tolist() == [5.0, 4.0]


def coarser(values, digits):
    return np.floor(values * 10.0 ** (digits - 3)) / 10.0 ** (digits - 3)


def enough(values):
    return next((digits for digits in range(3, 9) if len(set(coarser(values, digits))) >= 3), 9)


def test_digits_are_those_that_all_values_need_however_they_came():
    def of(values):
        sums = GroupedSums(1, most=4, rounded=coarser, digits=enough)
        sums.add(np.zeros(len(values), np.int64), np.array(values), np.ones((len(values), 1)))
        sums.compact()
        return sums

    narrow = [8.0, 8.125, 8.25, 8.375, 8.5]
    assert content(of(narrow)) == [(0, 8.0, 1.0), (0, 8.1, 1.0), (0, 8.2, 1.0), (0, 8.3, 1.0), (0, 8.5, 1.0)]
    wide = [1.5, 2.5, 3.5]
    expected = [(0, 1.0, 1.0), (0, 2.0, 1.0), (0, 3.0, 1.0), (0, 8.0, 5.0)]
    for first, second in ((narrow, wide), (wide, narrow)):
        sums = of(first)
        sums.merge(of(second), np.array([0]))
        assert content(sums) == content(of([*first, *second])) == expected
        assert sums.digits == {0: 3}


@pytest.mark.parametrize(("many", "rows"), [(3, 2_000), (500, 2_000), (1, 300), (1, 0), (70_000, 100)])
def test_rows_are_ordered_by_slice_then_value_then_as_they_came(many, rows):
    random = np.random.default_rng(7)
    slices, values = random.integers(0, many, rows), random.integers(0, 50, rows) / 7
    ordered = grouped_sums._order(slices, values)
    assert ordered.tolist() == np.lexsort((values, slices)).tolist()
