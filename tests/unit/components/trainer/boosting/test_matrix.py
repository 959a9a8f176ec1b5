"""Values that only rounding sets apart, and where the effect of a number may bend."""

import numpy as np
import pytest

from slipway.components.trainer.boosting.matrix import BENDS, Columns, merge_rounding_duplicates

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn


@pytest.mark.parametrize(
    ("values", "are"),
    [
        ([0.5, 0.5 + 2**-24, -0.25, 1.0], [0.5, 0.5, -0.25, 1.0]),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        ([3.0], [3.0]),
        ([0.0, 0.0, 1e-30], [0.0, 0.0, 1e-30]),
        ([1e6, 1.0, 1.001], [1e6, 1.0, 1.001]),  # a large one does not make others equal
    ],
)
def test_only_values_within_rounding_become_equal(values, are):
    assert (
        merge_rounding_duplicates(np.array(values, np.float32)).tolist() == np.array(are, np.float32).tolist()
    )


def test_values_that_lie_dense_stay_what_they_are():
    dense = np.arange(5000, dtype=np.float32) * np.float32(2**-24) + np.float32(1)
    assert (merge_rounding_duplicates(dense) == dense).all()


def test_the_effects_of_numbers_but_not_of_too_many_may_bend_where_their_rows_lie():
    columns = Columns(names=("zone", "age", "size"), categories=(3,))
    matrix = np.array([[row % 3, row, -10 * row] for row in range(11)], np.float32)
    bends = columns.bends(matrix)
    assert bends.tolist() == [[2, 4, 6, 8], [-80, -60, -40, -20]]
    assert columns.beyond(matrix[[7]], bends).tolist() == [[5, 3, 1, 0, 10, 0, 0, 0]]
    assert BENDS * columns.bent == bends.size
    assert Columns(names=("pixel",) * 101, categories=()).bent == 0
