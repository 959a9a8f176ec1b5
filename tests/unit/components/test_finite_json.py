import math

from slipway.components.finite_json import finite, finite_numbers


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
