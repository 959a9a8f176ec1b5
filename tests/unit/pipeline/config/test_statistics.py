"""The section `statistics`: what is accepted, and what is refused in which words."""

import pytest
from pydantic import ValidationError

from slipway.pipeline.config.statistics import StatisticsConfig


def test_without_keys_all_rows_count_once_and_there_are_no_slices():
    assert StatisticsConfig().model_dump() == {"slices": (), "weight": None, "sample_rate": None}


@pytest.mark.parametrize("given", [{"sample_rate": 1.0}, {"weight": "w"}, {"slices": [["a"], ["a", "b"]]}])
def test_keys_are_taken(given):
    assert StatisticsConfig(**given).model_fields_set == set(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sample_rate": 0.0}, "greater than 0"),
        ({"sample_rate": 1.01}, "less than or equal to 1"),
        ({"weight": ""}, "at least 1 character"),
        ({"slices": [["a"], ["a"]]}, "given twice; keep one"),
        ({"slices": [["a", "b"], ["b", "a"]]}, "given twice; keep one"),
        ({"slices": [["a", "a"]]}, "names a column twice"),
        ({"slices": [[]]}, "at least 1 item"),
    ],
)
def test_what_makes_no_sense_is_refused(given, words):
    with pytest.raises(ValidationError, match=words):
        StatisticsConfig(**given)
