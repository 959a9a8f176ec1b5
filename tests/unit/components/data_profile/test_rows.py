"""Rows of a sample: runs of neighbours, spread over all of them."""

from itertools import pairwise

import pytest

from slipway.components.data_profile.rows import RUNS, spread


@pytest.mark.parametrize("many", [0, 1, RUNS + 1, 1000])
def test_of_few_records_all_are_taken(many):
    rows = [b"%d" % row for row in range(many)]
    assert spread([rows[:7], [], rows[7:]], 1000) == rows


def test_sample_is_of_the_whole_file_and_of_neighbours():
    """Sorted by class, the first rows are of one; and a row that is there twice is not far from itself."""
    ordered = [b"%d" % (row // 20 * 10 + row % 10) for row in range(100_000)]  # each ten rows twice
    found = spread([ordered[:30_000], ordered[30_000:]], 6400)
    numbers = list(map(int, found))
    assert len(found) == 6400
    assert numbers[-1] > 48_000
    assert max(later - earlier for earlier, later in pairwise(numbers)) < 2000
    assert len(set(found)) < 0.6 * len(found)
    assert len(spread([ordered], 5)) == 5  # of each of many files
