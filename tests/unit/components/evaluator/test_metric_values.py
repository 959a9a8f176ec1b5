"""The metrics' values from counts: worked out by hand, and what cannot be computed is refused in words."""

import math
from dataclasses import replace

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.metric_values import area, mean_of_known, results, values_of
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.slices import column_of
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import CONFUSION, METRICS

LABELS = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
ANSWERS = np.array([0.2, 0.9, 0.6, 0.7, 0.1])
CODES, NAMES = np.array([0, 1, 0, 1, 2]), ["a", "b", "c"]
BY_HAND = {
    "BinaryAccuracy": [8 / 11, 4 / 6],
    "Precision": [3 / 4, math.nan],
    "Recall": [3 / 5, 0.0],
    "F1Score": [6 / 9, 0.0],
    "TruePositives": [3.0, 0.0],
    "TrueNegatives": [5.0, 4.0],
    "FalsePositives": [1.0, 0.0],
    "FalseNegatives": [2.0, 2.0],
}
CANDIDATE = ModelRequest("", "label", is_baseline=False)


def request(*metrics, **more):
    names = {name: METRICS[name].class_name for name in metrics}
    plain = Request(models=(CANDIDATE,), slices=((), ("text",)), metrics=names, example_count="example_count")
    return replace(plain, **more)


def tallied(asked, *, answers=(ANSWERS,), weights=None):
    tally = Tally(asked)
    judged = [Judged(LABELS[:, None], each[:, None], weights) for each in answers]
    tally.add({"text": column_of("text", np.arange(5), CODES, NAMES)}, judged, first=0)
    return tally


def values(asked, tally):
    return {
        key: {name: value for (_, name), value in each.items()} for key, each in results(asked, tally).items()
    }


@pytest.mark.parametrize("class_name", CONFUSION)
def test_metrics_of_the_confusion_are_what_they_are_by_hand_and_none_where_that_divides_by_0(class_name):
    # True positives, true negatives, false positives, false negatives; in the second nothing is above 1/2.
    cells = np.array([[3.0, 5.0, 1.0, 2.0], [0.0, 4.0, 0.0, 2.0]])
    found = values_of(class_name, cells[:, :, None])
    assert found.shape == (2, 1)
    assert found[:, 0] == pytest.approx(BY_HAND[class_name], nan_ok=True)


@pytest.mark.parametrize(
    ("class_name", "expected"), [("MeanSquaredError", 2.25), ("RootMeanSquaredError", 1.5)]
)
def test_a_mean_is_its_sum_by_its_rows_and_of_no_rows_none(class_name, expected):
    sums = np.array([[9.0, 4.0], [0.0, 0.0]])
    assert values_of(class_name, sums[:, :, None])[:, 0] == pytest.approx([expected, math.nan], nan_ok=True)


@pytest.mark.parametrize(("others", "expected"), [(0.0, 6 / 4), (1.0, 2 / 4)])
def test_a_hinge_takes_labels_of_zero_and_one_as_signs_unless_there_are_others(others, expected):
    # With the labels as they are, with 0 and 1 as signs, how many are neither, and the rows.
    sums = np.array([[2.0, 6.0, others, 4.0]])
    assert values_of("Hinge", sums[:, :, None])[:, 0] == pytest.approx([expected])


def test_samples_of_the_rows_are_each_computed():
    sums = np.array([[[9.0, 1.0, 0.0], [4.0, 4.0, 0.0]]])
    assert values_of("MeanSquaredError", sums).tolist() == [
        [2.25, 0.25, pytest.approx(math.nan, nan_ok=True)]
    ]


def test_an_area_is_the_share_of_pairs_in_their_order_and_half_of_those_in_one_bucket():
    buckets = np.array([1.0, 5000.0, 10_001.0])
    positives_and_negatives = np.array([[0.0, 2.0], [1.0, 1.0], [3.0, 0.0]])
    assert area(buckets, positives_and_negatives) == pytest.approx((2.5 + 3 * 3) / 12)
    assert area(buckets, positives_and_negatives[:, ::-1]) == pytest.approx(0.5 / 12)


def test_a_mean_of_known_values_leaves_out_what_is_none():
    found = mean_of_known(np.array([[1.0, math.nan, math.nan], [3.0, 5.0, math.nan]]))
    assert found == pytest.approx([2.0, 5.0, math.nan], nan_ok=True)


def test_metrics_of_all_rows_and_of_each_slice():
    asked = request("auc", "precision", "root_mean_squared_error")
    found = values(asked, tallied(asked))
    assert found[()] == {
        "example_count": 5.0,
        "auc": pytest.approx(0.5),
        "precision": pytest.approx(2 / 3),
        "root_mean_squared_error": pytest.approx(math.sqrt(np.mean((LABELS - ANSWERS) ** 2))),
    }
    assert found[("text", "c"),]["example_count"] == 1.0
    assert math.isnan(found[("text", "c"),]["precision"]), "nothing is above one half"
    assert found[("text", "b"),]["auc"] == 1.0


def test_without_a_row_there_is_no_slice():
    asked = request("precision")
    assert results(asked, Tally(asked)) == {}


def test_rows_that_all_weigh_nothing_are_refused_in_words():
    asked = request("precision", models=(replace(CANDIDATE, weight="w"),))
    with pytest.raises(ComponentError, match="the weight w is 0 in every row of the eval split"):
        results(asked, tallied(asked, weights=np.zeros(5)))


@pytest.mark.parametrize(
    ("lost", "whose", "hint"),
    [(0, "candidate", "check what the model divides by or takes the logarithm of"), (1, "baseline", "")],
)
def test_area_of_answers_that_are_no_number_is_refused_in_words(lost, whose, hint):
    baseline = ModelRequest("baseline", "label", is_baseline=True)
    asked = request("auc", models=(replace(CANDIDATE, name="candidate"), baseline))
    answers = [ANSWERS, ANSWERS]
    answers[lost] = np.where(LABELS == 0, np.nan, ANSWERS)
    with pytest.raises(ComponentError) as told:
        results(asked, tallied(asked, answers=answers))
    assert told.value.message == (
        f"the {whose} model answers NaN for 2 of 5 rows of the eval split, so auc cannot be computed"
    )
    assert told.value.hint == hint
