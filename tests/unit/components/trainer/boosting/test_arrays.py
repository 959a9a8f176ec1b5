"""Trees laid out as arrays of 32 bits."""

import numpy as np
import pytest
from rows_for_trees import FEATURES

from slipway.components.trainer.boosting.arrays import floor32, words_of
from slipway.components.trainer.boosting.matrix import Columns

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn


def test_no_number_changes_its_side_of_a_rounded_threshold():
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    thresholds = (values.astype(np.float64) + np.nextafter(values, np.float32(9)).astype(np.float64)) / 2
    assert (values <= floor32(thresholds)).all()
    assert (np.nextafter(values, np.float32(9)) > floor32(thresholds)).all()


def test_categories_take_as_many_words_as_the_largest_needs():
    assert words_of(Columns.of(FEATURES)) == 3
    assert words_of(Columns(names=("size",), categories=())) == 0
