"""What a tuner may try is checked before anything is trained."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.search_space import Choices, Range, search_space


def test_choices_and_ranges_are_distinguished_and_lists_travel_as_texts():
    nothing = {"choices": None, "low": None, "high": None, "step": None, "log": False}
    assert search_space(
        {
            "units": {**nothing, "choices": [[64, 32], [128]]},
            "rate": {**nothing, "low": 0.0001, "high": 0.01, "log": True},
            "depth": {**nothing, "low": 1, "high": 4, "step": 1},
        }
    ) == {
        "units": Choices(values=("[64, 32]", "[128]")),
        "rate": Range(low=0.0001, high=0.01, log=True),
        "depth": Range(low=1, high=4, step=1),
    }


def test_range_of_whole_numbers_stays_whole():
    assert Range(low=1, high=4).is_whole
    assert not Range(low=1, high=4.0).is_whole


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, r"tune.search.rate \(empty\) must have either choices, or low and high"),
        ({"low": 1}, r"tune.search.rate \(low\) must have"),
        ({"choices": [1], "low": 1}, r"tune.search.rate \(choices, low\) must have"),
        ({"choices": []}, r"tune.search.rate \(choices\) must not have empty choices"),
        ({"low": 2, "high": 1}, "must have low < high; low is 2, high 1"),
        ({"low": 0.0, "high": 1.0, "log": True}, "must have 0 < low < high with log; low is 0.0, high 1.0"),
    ],
)
def test_wrong_entry_is_refused_in_words(entry, words):
    with pytest.raises(ComponentError, match=words):
        search_space({"rate": entry})


def test_empty_space_is_refused():
    with pytest.raises(ComponentError, match="names no hyperparameter"):
        search_space({})
