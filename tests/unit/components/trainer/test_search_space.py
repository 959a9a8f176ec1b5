"""What a tuner may try is checked before anything is trained."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.search_space import Choices, Range, choices_of, chosen, search_space


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


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1, 2], (1, 2)),
        ([0, 0.5], (0.0, 0.5)),
        (["a", "b"], ("a", "b")),
        ([None, 5], ("null", "5")),
        ([True, False], ("true", "false")),
        (["[UNK]", "true", "7"], ("[UNK]", '"true"', '"7"')),
        ([{"flip": True}, None], ('{"flip": true}', "null")),
        ([[64, 32], "wide"], ("[64, 32]", "wide")),
    ],
)
def test_choices_of_all_kinds_come_back_as_the_workload_writes_them(values, told):
    found = choices_of(values).values
    assert found == told
    assert len({type(each) for each in found}) == 1, "KerasTuner takes no mixture"
    assert repr([chosen(each) for each in found]) == repr(
        [float(v) for v in values] if 0.5 in values else values
    )


def test_range_of_whole_numbers_stays_whole():
    assert Range(low=1, high=4).is_whole
    assert Range(low=1, high=4, step=2).is_whole
    assert not Range(low=1, high=4.0).is_whole
    assert not Range(low=1, high=4, step=0.5).is_whole


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, r"tune.search.rate \(empty\) must have either choices, or low and high"),
        ({"low": 1}, r"tune.search.rate \(low\) must have"),
        ({"choices": [1], "low": 1}, r"tune.search.rate \(choices, low\) must have"),
        ({"choices": []}, r"tune.search.rate \(choices\) must not have empty choices"),
        ({"low": 2, "high": 1}, "must have low < high; low is 2, high 1"),
        (
            {"low": 1, "high": 8, "log": True, "step": 1},
            "must have a step above 1 with log, as it multiplies; step is 1",
        ),
        ({"low": 0.0, "high": 1.0, "log": True}, "must have 0 < low < high with log; low is 0.0, high 1.0"),
    ],
)
def test_wrong_entry_is_refused_in_words(entry, words):
    with pytest.raises(ComponentError, match=words):
        search_space({"rate": entry})


def test_empty_space_is_refused():
    with pytest.raises(ComponentError, match="names no hyperparameter"):
        search_space({})
