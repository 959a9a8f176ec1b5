"""Rows in buckets by length: which one a row is in, and the shapes of each. No TensorFlow."""

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.buckets import Buckets, lengths_of
from slipway.components.trainer.features import Feature

INPUTS = {
    "words": Feature(name="words", dtype="int64", shape=(8,), categories=9),
    "prices": Feature(name="prices", dtype="float32", shape=(4, 2)),
    "age": Feature(name="age", dtype="float32"),
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
    found = buckets.of_rows({"words": words, "prices": prices})
    assert found.tolist() == [0, 0, 1, 2, 2]
    assert buckets.words(found) == (
        "words of 2: 2 rows, 5: 1 row, 8: 2 rows; prices of 1: 2 rows, 2: 1 row, 4: 2 rows"
    )


def test_all_rows_are_looked_at_however_many():
    words = np.zeros((10_000, 8), np.int32)
    words[9_999, 3] = words[5_000, 7] = 1
    found = Buckets.of({"words": [2, 5]}, INPUTS).of_rows({"words": words})
    assert (found[9_999], found[5_000], found.sum()) == (1, 2, 3)


def test_a_model_is_trained_on_any_length_and_checked_on_each():
    buckets = Buckets.of(BOTH, INPUTS)
    trained = buckets.any_length(INPUTS)
    assert [trained[name].shape for name in INPUTS] == [(None,), (None, 2), (1,)]
    assert trained["words"].categories == 9
    shortest = buckets.features(INPUTS, 0)
    assert [shortest[name].shape for name in INPUTS] == [(2,), (1, 2), (1,)]
    assert buckets.features(INPUTS, 2) == INPUTS


def test_without_the_key_there_is_one_program_of_the_columns_own_lengths():
    buckets = Buckets.of({}, INPUTS)
    assert (buckets.count, buckets.any_length(INPUTS), buckets.features(INPUTS, 0)) == (1, INPUTS, INPUTS)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"word": [2]}, "names word, which is not a feature; there are: age, prices, words"),
        ({"words": [2, 8]}, "words has 8 values a row, so a bucket of 8 saves nothing"),
        ({"age": [1]}, "age has 1 values a row"),
    ],
)
def test_columns_that_no_length_can_be_cut_of_are_refused(wanted, words):
    with pytest.raises(ComponentError, match=words):
        Buckets.of(wanted, INPUTS)
