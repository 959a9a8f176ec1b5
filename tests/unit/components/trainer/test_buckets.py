"""Rows in buckets by length: the shapes of each. No TensorFlow."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.buckets import Buckets
from slipway.components.trainer.features import Feature

INPUTS = {
    "words": Feature(name="words", dtype="int64", shape=(8,), categories=9),
    "prices": Feature(name="prices", dtype="float32", shape=(4, 2)),
    "age": Feature(name="age", dtype="float32"),
}
BOTH = {"words": [2, 5], "prices": [1, 2]}


def test_each_length_is_told_with_its_rows():
    assert Buckets.of(BOTH, INPUTS).words([2, 1, 2000]) == (
        "words of 2: 2 rows, 5: 1 row, 8: 2,000 rows; prices of 1: 2 rows, 2: 1 row, 4: 2,000 rows"
    )


def test_the_lengths_of_one_bucket_are_named():
    assert Buckets.of(BOTH, INPUTS).named(1) == "words of 5, prices of 2"


def test_a_model_is_trained_on_any_length_and_checked_on_each():
    buckets = Buckets.of(BOTH, INPUTS)
    assert (buckets.count, buckets.longest) == (3, 8)
    trained = buckets.any_length(INPUTS)
    assert [trained[name].shape for name in INPUTS] == [(None,), (None, 2), (1,)]
    assert trained["words"].categories == 9
    shortest = buckets.features(INPUTS, 0)
    assert [shortest[name].shape for name in INPUTS] == [(2,), (1, 2), (1,)]
    assert buckets.features(INPUTS, 2) == INPUTS


def test_without_the_key_there_is_one_program_of_the_columns_own_lengths():
    buckets = Buckets.of({}, INPUTS)
    assert (buckets.count, buckets.longest) == (1, 1)
    assert buckets.any_length(INPUTS) == buckets.features(INPUTS, 0) == INPUTS


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
