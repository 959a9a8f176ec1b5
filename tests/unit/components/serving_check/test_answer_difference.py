"""How far answers lie apart."""

import json
import math

import numpy as np
import pytest

from slipway.components.serving_check.answer_difference import difference, feature_differences

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("got", "wanted", "largest", "row"),
    [
        ([0.5, 0.5], [0.5, 0.5], 0.0, 0),
        ([0.5, 0.7], [0.5, 0.6], 0.1, 1),
        ([1000.0], [1001.0], 1 / 1001, 0),  # relative above 1
        ([NAN, 1.0], [NAN, 1.0], 0.0, 0),
        ([1.0, NAN], [1.0, 0.5], INF, 1),
        ([INF], [INF], 0.0, 0),
        ([INF], [-INF], INF, 0),
        ([INF, 1.0], [1.0, 1.0], INF, 0),
        ([], [], 0.0, 0),
    ],
)
def test_largest_difference_and_its_row_are_found(got, wanted, largest, row):
    found = difference(np.array(got), np.array(wanted))
    assert found.largest == pytest.approx(largest)
    assert found.row == row
    json.dumps(found.to_json(), allow_nan=False)


def test_other_shape_is_no_agreement():
    assert difference(np.zeros((3, 1)), np.zeros((3, 2))).largest == INF
    assert difference(np.zeros((2, 1)), np.zeros((3, 1))).largest == INF


def test_several_outputs_are_compared_each():
    assert difference(np.array([[0.1, 0.9]]), np.array([[0.1, 0.8]])).largest == pytest.approx(0.1)


def test_feature_that_differs_most_comes_first_and_a_missing_one_before():
    wanted = {"a": np.zeros(2), "b": np.zeros(2), "c": np.zeros(2)}
    found = feature_differences({"a": np.zeros(2), "b": np.array([0.0, 0.3])}, wanted)
    assert list(found) == ["c", "b", "a"]
    assert [each.largest for each in found.values()] == [INF, pytest.approx(0.3), 0.0]
