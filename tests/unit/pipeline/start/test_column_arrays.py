import numpy as np
import pyarrow as pa
import pytest

from slipway.pipeline.start.column_arrays import (
    are_merged,
    is_list,
    joined,
    list_arrays,
    rows_without_text,
    value_array,
)


def _lists(*rows, of=None):
    return pa.array(rows, pa.large_list(of or pa.int64()))


def test_a_column_is_of_lists_if_a_row_of_any_block_has_several_values():
    column = joined([pa.array([1, None], pa.int64()), _lists([2, 3], [], None), _lists([4])])
    assert is_list(column)
    assert [each.tolist() for each in list_arrays(column)] == [[1], [], [2, 3], [], [], [4]]


@pytest.mark.parametrize("single", [(), (pa.array([9], pa.int64()),)])
def test_lists_of_at_most_one_value_are_values(single):
    column = joined([_lists([1], None, []), _lists([2]), *single])
    assert not is_list(column)
    assert column.to_pylist() == [1, None, None, 2, *(9 for _ in single)]


def test_blocks_without_lists_are_put_together():
    assert joined([pa.array([1.5]), pa.array([None, 2.5], pa.float64())]).to_pylist() == [1.5, None, 2.5]
    assert joined([pa.array([], pa.int64())]).to_pylist() == []


def test_a_missing_value_is_nan_among_numbers_and_none_among_texts():
    numbers = value_array(pa.array([1, None], pa.int64()))
    assert (numbers.dtype, numbers[0], np.isnan(numbers[1])) == (np.float64, 1.0, True)
    texts = value_array(pa.array([b"h\xc3\xa9", None, b"\xff"], pa.large_binary()))
    assert texts.tolist() == ["h\xe9", None, "\ufffd"]


def test_lists_of_texts_are_texts_and_no_list_is_empty():
    found = list_arrays(_lists([b"a", b"b"], None, [b"c"], of=pa.large_binary()))
    assert [each.tolist() for each in found] == [["a", "b"], [], ["c"]]


@pytest.mark.parametrize(
    ("column", "rows"),
    [
        (pa.array([1, 2]), 0),
        (pa.array([b"a", None, b"h\xc3\xa9"], pa.large_binary()), 0),
        (pa.array([b"a", b"\xff", None, b"\xfe"], pa.large_binary()), 2),
        (_lists([b"a"], [b"a", b"\xff"], [], of=pa.large_binary()), 1),
    ],
)
def test_rows_with_bytes_that_are_no_text_are_counted(column, rows):
    assert rows_without_text(column) == rows


@pytest.mark.parametrize(
    ("values", "merged"),
    [
        ([2**53, 2**53 + 1], True),
        ([-(2**53) - 1, -(2**53)], True),
        ([2**53, 2**53 + 2, None], False),
        ([1, 2], False),
        ([None], False),
        ([], False),
    ],
)
def test_integers_that_are_one_as_fractions_are_found(values, merged):
    assert are_merged(pa.array(values, pa.int64())) is merged


def test_fractions_and_texts_are_not_merged():
    assert not are_merged(pa.array([2.0**53, 2.0**53 + 2]))
    assert not are_merged(pa.array([b"a"], pa.large_binary()))
