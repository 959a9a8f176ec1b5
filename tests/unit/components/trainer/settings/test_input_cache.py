import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.input_cache import InputSettings


def test_lengths_are_read_back():
    settings = InputSettings(bucket_by_length={"words": [16, 64], "tags": [2, 4]})
    assert InputSettings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ([16], "train.input.bucket_by_length maps columns to lengths"),
        ({"words": []}, r"train.input.bucket_by_length.words \(\[\]\) must list whole numbers >= 1"),
        ({"words": 16}, "must list whole numbers"),
        ({"words": [0, 16]}, "must list whole numbers >= 1"),
        ({"words": [16, 16]}, "each greater than the one before"),
        ({"words": [True]}, "must list whole numbers"),
        ({"words": [16], "tags": [2, 4]}, "gives its columns different numbers of lengths"),
    ],
)
def test_lengths_that_make_no_buckets_are_refused(wanted, words):
    with pytest.raises(ComponentError, match=words):
        InputSettings(bucket_by_length=wanted)


def test_buckets_need_rows_at_hand():
    with pytest.raises(ComponentError, match="cache is none") as refused:
        InputSettings(bucket_by_length={"words": [16]}, cache="none")
    assert refused.value.hint == "set train.input.cache to file, memory or auto"
