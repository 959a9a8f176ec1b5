"""Where the input is kept, and which host reads which files."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.input.plan import (
    MAX_BLOCK_BYTES,
    MAX_WINDOW_BYTES,
    block_steps,
    files_of_host,
    portions,
    row_bytes,
    window,
)


def test_row_is_as_large_as_its_features():
    features = (Feature(name="image", dtype="float32", shape=(28, 28)), Feature(name="y", dtype="int64"))
    assert row_bytes(features) == 28 * 28 * 4 + 4


def test_every_file_has_one_host():
    files = tuple("abcde")
    assert [files_of_host(files, index=index, count=2) for index in range(2)] == [tuple("ace"), tuple("bd")]


def test_fewer_files_than_hosts_are_refused():
    with pytest.raises(ComponentError, match="4 hosts cannot share 3 files"):
        files_of_host(tuple("abc"), index=0, count=4)


def test_window_holds_whole_batches_and_no_more_than_memory_allows():
    assert window(32, 100, row_bytes=8).batches == 4
    assert window(1024, 10**9, row_bytes=2**20).rows * 2**20 <= MAX_WINDOW_BYTES + 1024 * 2**20
    assert window(32, 1, row_bytes=8).batches == 1


@pytest.mark.parametrize(
    ("rows", "steps", "expected"),
    [
        (256, 8, [(128, 4), (128, 4)]),
        (128 + 40, 5, [(134, 4), (34, 1)]),
        (128 + 20, 4, [(148, 4)]),
        (31 + 8 * 32, 8, [(143, 4), (144, 4)]),
        (10 * 128, 4, [(320, 1), (320, 1), (320, 1), (320, 1)]),  # another host has a tenth of the rows
    ],
)
def test_each_window_leaves_out_its_share_of_the_rows_that_fill_no_batch(rows, steps, expected):
    found = portions(window(32, 128, row_bytes=8), rows=rows, steps=steps)
    assert [(each.rows, each.batches) for each in found] == expected


@pytest.mark.parametrize("rows", range(32, 700, 13))
def test_windows_hold_all_rows_and_no_batch_lacks_one(rows):
    for steps in range(1, rows // 32 + 1):
        found = portions(window(32, 128, row_bytes=8), rows=rows, steps=steps)
        assert sum(each.rows for each in found) == rows
        assert sum(each.batches for each in found) == steps
        assert all(each.rows >= each.batches * 32 > 0 for each in found)
        assert len({each.batches for each in found[:-1]}) <= 1


@pytest.mark.parametrize(
    ("steps", "batches_that_fit", "expected"), [(50, 1000, 50), (50, 30, 25), (7, 5, 1), (12, 0.5, 1)]
)
def test_block_is_the_largest_divisor_of_a_call_that_memory_holds(steps, batches_that_fit, expected):
    assert block_steps(steps, batch_bytes=round(MAX_BLOCK_BYTES / batches_that_fit)) == expected
