"""Rows of a sample: as many as there is room for."""

from itertools import pairwise, repeat

import pytest

from slipway.components.data_profile.rows import RUN_ROWS, spread, within


def test_records_are_taken_until_they_fill_the_room():
    assert len(list(within(repeat(bytes(1000)), 10_000))) == 10
    assert len(list(within(repeat(bytes(1000)), 10_001))) == 11


def test_one_record_is_taken_however_large():
    assert list(within([b"large", b"other"], 1)) == [b"large"]
    assert list(within([], 1)) == []


@pytest.mark.parametrize("many", [0, 1, RUN_ROWS + 1, 1000])
def test_of_few_records_all_are_taken(many):
    rows = [b"%d" % row for row in range(many)]
    assert spread([rows[:7], [], rows[7:]], 1000) == rows


def test_sample_is_of_the_whole_file_and_of_neighbours():
    """Sorted by class, the first rows are of one; and a row that is there twice follows itself."""
    ordered = [b"%d" % (row // 2) for row in range(100_000)]
    found = spread([ordered[:30_000], ordered[30_000:]], 1000)
    assert len(found) == 16 * RUN_ROWS
    assert found == sorted(found, key=int)
    assert int(found[-1]) > 45_000
    assert sum(one == next_one for one, next_one in pairwise(found)) == len(found) // 2
    assert len(spread([ordered], 5)) == 5  # of each of many files
