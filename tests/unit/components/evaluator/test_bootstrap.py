import pickle

import numpy as np
import pytest

from slipway.components.evaluator.bootstrap import (
    REPLICATES,
    Memberships,
    Replicates,
    Samples,
    row_number,
    row_weights,
)


def test_bytes_weigh_as_poisson_numbers_of_mean_and_variance_one():
    weights = row_weights(0, 20_000)
    assert weights.shape == (20_000, REPLICATES)
    shares = np.bincount(weights.ravel().astype(int)) / weights.size
    assert shares == pytest.approx([0.3679, 0.3679, 0.1839, 0.0613, 0.0153, 0.0031], abs=0.006)
    assert weights.mean() == pytest.approx(1, abs=0.005)
    assert weights.var() == pytest.approx(1, abs=0.01)


def test_replicates_and_rows_have_nothing_to_do_with_each_other():
    weights = row_weights(row_number(3, 0), 20_000)
    by_replicate, by_row = np.corrcoef(weights.T), np.corrcoef(weights[:200])
    for found, limit in ((by_replicate, 0.04), (by_row, 0.7)):
        assert np.abs(found - np.eye(len(found))).max() < limit
    assert np.corrcoef(weights[:-1].ravel(), weights[1:].ravel())[0, 1] == pytest.approx(0, abs=0.005)


def test_a_row_has_the_same_weights_in_every_batch_and_others_in_every_file():
    whole = row_weights(row_number(1, 0), 100)
    parts = [row_weights(row_number(1, first), 20) for first in range(0, 100, 20)]
    assert (np.concatenate(parts) == whole).all()
    assert not (row_weights(row_number(0, 0), 100) == whole).all()
    assert row_number(1, 0) > row_number(0, 2**40 - 1)


ROWS = np.array([0, 1, 2, 3, 1])
SLICES = np.array([0, 0, 0, 0, 1])
WEIGHTS = row_weights(0, 4)
SAMPLES = Samples.of(Memberships(ROWS, SLICES, 2), WEIGHTS)


def test_sums_are_those_of_the_weighted_rows_of_each_slice():
    counted = Replicates()
    values = np.array([[2.0, 1.0], [3.0, 1.0], [5.0, 1.0], [7.0, 1.0]])
    counted.add("errors", values, SAMPLES)
    one = Samples.of(Memberships(np.array([0]), np.array([1]), 2), WEIGHTS[:1])
    counted.add("errors", values[:1], one)
    first, second = (values[row][:, None] * WEIGHTS[row] for row in (0, 1))
    assert (counted.sums["errors"][0] == values.T @ WEIGHTS).all()
    assert (counted.sums["errors"][1] == second + first).all()


def test_entries_count_in_their_cells():
    counted = Replicates()
    cells, factors = np.array([[4, 0], [0, 1], [4, 5], [1, 5]]), np.array([[1, 0], [1, 1], [0.5, 0], [1, 0]])
    for _ in range(2):
        counted.add_to_cells("curve", cells, 6, factors, SAMPLES)
    sums = counted.sums["curve"]
    assert sums.shape == (2, 6, REPLICATES)
    assert (sums[0, 4] == 2 * WEIGHTS[0] + WEIGHTS[2]).all()
    assert (sums[0, 1] == 2 * (WEIGHTS[1] + WEIGHTS[3])).all()
    assert (sums[1, [0, 1]] == 2 * WEIGHTS[1]).all()
    assert not sums[:, [2, 3, 5]].any()
    assert not sums[1, 4].any()


def test_parts_add_up_at_the_places_that_slices_have_here():
    counted, other = Replicates(), Replicates()
    counted.add("errors", np.ones((4, 1)), SAMPLES)
    other.add("errors", np.ones((4, 1)), SAMPLES)
    before = {name: sums.copy() for name, sums in counted.sums.items()}
    counted.merge(pickle.loads(pickle.dumps(other)), np.array([2, 0]), 3)  # noqa: S301
    found = counted.sums["errors"]
    assert (found[0] == before["errors"][0] + before["errors"][1]).all()
    assert (found[1] == before["errors"][1]).all()
    assert (found[2] == before["errors"][0]).all()
    counted.merge(other, np.array([1, 4]), 3)
    assert (found[1] == before["errors"][1] + before["errors"][0]).all(), (
        "the slice without bounds is left out"
    )


@pytest.mark.parametrize(
    ("place", "kept"), [(1, [False, True]), (0, [True]), (None, []), (7, [False, False])]
)
def test_all_slices_but_one_can_be_dropped(place, kept):
    counted = Replicates()
    counted.add("errors", np.ones((4, 1)), SAMPLES)
    counted.keep_only(place)
    assert [bool(sums.any()) for sums in counted.sums["errors"]] == kept
