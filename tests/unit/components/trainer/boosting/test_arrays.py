"""Trees laid out as arrays of 32 bits."""

import numpy as np
import pytest

from slipway.components.trainer.boosting.arrays import floor32, words_of
from slipway.components.trainer.boosting.matrix import Columns
from slipway.components.trainer.features import Feature

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn
FEATURES = {
    "size": Feature(name="size", dtype="float32"),
    "pair": Feature(name="pair", dtype="float32", shape=(2,)),
    "kind": Feature(name="kind", dtype="int64", categories=70),
    "zone": Feature(name="zone", dtype="int64", categories=4),
    "shop": Feature(name="shop", dtype="int64", categories=400),
}


def test_no_number_changes_its_side_of_a_rounded_threshold():
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    thresholds = (values.astype(np.float64) + np.nextafter(values, np.float32(9)).astype(np.float64)) / 2
    assert (values <= floor32(thresholds)).all()
    assert (np.nextafter(values, np.float32(9)) > floor32(thresholds)).all()


def test_categories_take_as_many_words_as_the_largest_needs():
    assert words_of(Columns.of(FEATURES)) == 3
    assert words_of(Columns(names=("size",), categories=())) == 0
