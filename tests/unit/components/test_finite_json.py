import json
import math

import pytest

from slipway.components.finite_json import finite, finite_numbers, json_text, parsed


def test_numbers_that_json_does_not_have_become_none_wherever_they_are():
    document = {"metrics": {"auc": math.nan, "rows": 3}, "list": [math.inf, (-math.inf, 0.5)], "text": "NaN"}
    assert finite(document) == {
        "metrics": {"auc": None, "rows": 3},
        "list": [None, [None, 0.5]],
        "text": "NaN",
    }


def test_other_values_stay_as_they_are():
    document = {"a": [1, 2.5, True, None, "x"], "b": {}}
    assert finite(document) == document


def test_names_whose_number_is_not_finite_are_left_out():
    assert finite_numbers({"mae": math.inf, "auc": 0.5, "rows": 3, "f1": math.nan}) == {"auc": 0.5, "rows": 3}


@pytest.mark.parametrize("zeros", [400, 10_000])
def test_whole_number_beyond_floats_is_infinite_as_a_fraction_is(zeros):
    text = f'{{"a": [1{"0" * zeros}, -1{"0" * zeros}, 1e400], "b": {2**1000}, "c": 1.0, "d": 3}}'
    assert parsed(text) == {"a": [math.inf, -math.inf, math.inf], "b": 2**1000, "c": 1.0, "d": 3}


def _refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


def test_text_for_other_programs_has_null_for_numbers_that_json_does_not_have():
    document = {"metrics": {"auc": math.nan, "rows": 3}, "list": [math.inf, (-math.inf, 0.5)], "text": "NaN"}
    read = json.loads(json_text(document), parse_constant=_refuse)
    assert read == {"metrics": {"auc": None, "rows": 3}, "list": [None, [None, 0.5]], "text": "NaN"}
