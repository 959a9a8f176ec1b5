"""Which bucket a row is in: the first that holds all of its values."""

import numpy as np

from slipway.components.trainer.buckets import Buckets
from slipway.components.trainer.features import Feature
from slipway.components.trainer.row_lengths import buckets_of, lengths_of

INPUTS = {
    "words": Feature(name="words", dtype="int64", shape=(8,), categories=9),
    "prices": Feature(name="prices", dtype="float32", shape=(4, 2)),
}
BOTH = {"words": [2, 5], "prices": [1, 2]}


def test_a_length_is_the_place_of_the_last_value_that_is_not_0():
    codes = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3], [1, 2, 3]])
    assert lengths_of(codes).tolist() == [0, 1, 2, 3, 3]
    pairs = np.zeros((2, 3, 2), np.float32)
    pairs[1, 1, 1] = -0.5
    assert lengths_of(pairs).tolist() == [0, 2]


def test_a_row_is_in_the_first_bucket_in_which_no_column_is_cut():
    buckets = Buckets.of(BOTH, INPUTS)
    assert (buckets.lengths, buckets.count) == ({"words": (2, 5, 8), "prices": (1, 2, 4)}, 3)
    words, prices = np.zeros((5, 8), np.int32), np.zeros((5, 4, 2), np.float32)
    words[1, 1] = words[2, 2] = words[3, 7] = words[4, 0] = 1
    prices[0, 0] = prices[1, 0] = prices[4, 3] = 1.5
    found = buckets_of({"words": words, "prices": prices}, buckets)
    assert found.tolist() == [0, 0, 1, 2, 2]


def test_all_rows_are_looked_at_however_many():
    words = np.zeros((10_000, 8), np.int32)
    words[9_999, 3] = words[5_000, 7] = 1
    found = buckets_of({"words": words}, Buckets.of({"words": [2, 5]}, INPUTS))
    assert (found[9_999], found[5_000], found.sum()) == (1, 2, 3)
