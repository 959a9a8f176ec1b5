from itertools import pairwise

import numpy as np
import pytest

from slipway.pipeline.watch.windows import LEAST_ROWS, after, windows

BEGIN_MS = 1_795_305_600_000
HOUR_MS = 3_600_000


def found(*hours, by="hour"):
    """Windows of so many rows in each hour."""
    at = np.concatenate([np.full(rows, BEGIN_MS + hour * HOUR_MS + 1) for hour, rows in enumerate(hours)])
    return [(each.name, len(each.rows)) for each in windows(np.random.default_rng(0).permutation(at), by)]


def test_each_hour_or_day_is_one():
    assert found(600, 700) == [("2026-11-22 00:00", 600), ("2026-11-22 01:00", 700)]
    assert found(600, 700, by="day") == [("2026-11-22", 1300)]


@pytest.mark.parametrize(
    ("hours", "rows"),
    [
        ((600, 100, 700), [600, 800]),
        ((600, 100), [700]),
        ((100, 600), [700]),
        ((3,), [3]),
        ((600, 300, 300, 600), [600, 600, 600]),
    ],
)
def test_one_with_few_rows_is_joined(hours, rows):
    assert [many for _, many in found(*hours)] == rows


def test_every_row_is_in_one():
    at = BEGIN_MS + np.random.default_rng(1).integers(0, 90 * HOUR_MS, 10_000)
    cut = windows(at, "hour")
    assert sorted(np.concatenate([each.rows for each in cut])) == list(range(10_000))
    assert all(len(each.rows) >= LEAST_ROWS for each in cut)
    assert all(at[one.rows].max() < at[two.rows].min() for one, two in pairwise(cut))


def test_last_hour_or_day_of_a_window_is_known_across_a_gap():
    at = np.repeat(BEGIN_MS + np.array([0, 1, 90]) * 24 * HOUR_MS, (600, 700, 3))
    assert [(each.name, each.last) for each in windows(at, "day")] == [
        ("2026-11-22", "2026-11-22"),
        ("2026-11-23", "2027-02-20"),
    ]


def test_next_hour_or_day_begins_after_the_current_one():
    assert after(BEGIN_MS, "hour") == after(BEGIN_MS + HOUR_MS - 1, "hour") == BEGIN_MS + HOUR_MS
    assert after(BEGIN_MS + 23 * HOUR_MS, "day") == BEGIN_MS + 24 * HOUR_MS
