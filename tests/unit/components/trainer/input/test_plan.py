"""Where the input is kept, and which host reads which files."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.input.plan import (
    MAX_BLOCK_BYTES,
    MAX_WINDOW_BYTES,
    block_steps,
    files_of_host,
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


@pytest.mark.parametrize(("rows", "steps"), [(31, 0), (32, 1), (128, 4), (1000, 31), (128 + 40, 5)])
def test_window_counts_the_steps_of_an_epoch(rows, steps):
    assert window(32, 128, row_bytes=8).steps(rows) == steps


@pytest.mark.parametrize(
    ("steps", "batches_that_fit", "expected"), [(50, 1000, 50), (50, 30, 25), (7, 5, 1), (12, 0.5, 1)]
)
def test_block_is_the_largest_divisor_of_a_call_that_memory_holds(steps, batches_that_fit, expected):
    assert block_steps(steps, batch_bytes=round(MAX_BLOCK_BYTES / batches_that_fit)) == expected
