import json
import math

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.pipeline.watch.paired_metrics import PairedMetric, paired_metrics

DRAW = np.random.default_rng(0)
LABELS = (DRAW.random(3000) < 0.4).astype(float)[:, None]
GOOD = np.clip(0.3 * LABELS + 0.7 * DRAW.random((3000, 1)), 0, 1)
A_LITTLE_WORSE = np.where(DRAW.random((3000, 1)) < 0.03, 1 - LABELS, GOOD)


def test_small_difference_on_the_same_rows_is_shown():
    """Two models judged on different rows would need a far larger one: the values' own bounds overlap."""
    [found] = paired_metrics(LABELS, GOOD, A_LITTLE_WORSE, ["binary_accuracy"])
    assert found.champion - found.challenger == pytest.approx(0.025, abs=0.01)
    assert found.bounds[0] < found.challenger - found.champion < found.bounds[1] < 0
    assert found.bounds[1] - found.bounds[0] < 0.02
    assert found.verdict == "worse"
    [back] = paired_metrics(LABELS, A_LITTLE_WORSE, GOOD, ["binary_accuracy"])
    assert back.verdict == "better"
    assert back.bounds == pytest.approx((-found.bounds[1], -found.bounds[0]))


def test_lower_is_better_of_an_error():
    [found] = paired_metrics(LABELS, GOOD, A_LITTLE_WORSE, ["mean_absolute_error"])
    assert (found.challenger > found.champion, found.verdict) == (True, "worse")


def test_intervals_hold_together():
    """The more metrics, the wider each interval."""
    alone = paired_metrics(LABELS, GOOD, A_LITTLE_WORSE, ["auc"])[0]
    among = paired_metrics(LABELS, GOOD, A_LITTLE_WORSE, ["auc", "recall", "precision", "f1_score"])[0]
    assert among.challenger == alone.challenger
    assert among.bounds[1] - among.bounds[0] > 1.2 * (alone.bounds[1] - alone.bounds[0])


def test_equal_models_and_noise_show_no_difference():
    other = np.clip(GOOD + 0.01 * (DRAW.random((3000, 1)) - 0.5), 0, 1)
    for answers in (GOOD, other):
        for found in paired_metrics(LABELS, GOOD, answers, ["auc", "binary_accuracy"]):
            assert found.verdict == "no difference shown"


def test_value_that_is_no_number_is_reported():
    worse = PairedMetric("auc", 0.9, math.nan, (-math.inf, math.inf))
    assert worse.verdict == "worse"
    assert PairedMetric("auc", math.nan, 0.9, (-math.inf, math.inf)).verdict == "no difference shown"
    assert json.loads(json.dumps(worse.to_json(), allow_nan=False))["bounds"] == [None, None]


def test_metrics_of_two_classes_say_nothing_while_all_labels_are_of_one():
    auc, recall, accuracy = paired_metrics(
        np.zeros((3000, 1)), GOOD, 0.9 * GOOD, ["auc", "recall", "binary_accuracy"]
    )
    assert (auc.text, auc.verdict) == ("auc has no value for either", "no difference shown")
    assert (recall.text, recall.verdict) == ("recall has no value for either", "no difference shown")
    assert auc.to_json()["champion"] is None
    assert accuracy.verdict == "better"


def test_labels_that_are_no_classes_are_refused():
    three = np.full((3000, 3), 1 / 3)
    with pytest.raises(ComponentError, match="the model has the classes 0 to 2"):
        paired_metrics(LABELS + 2, three, three, ["sparse_categorical_accuracy"])


def test_small_differences_keep_their_digits():
    small = PairedMetric("mean_squared_error", 4e-5, 2e-5, (-2.5e-5, 1e-6))
    assert small.text == "mean_squared_error 2e-05 instead of 4e-05 (difference -2.5e-05 to +1e-06)"
    large = PairedMetric("auc", 0.9, 0.85, (-0.0612, 0.0))
    assert large.text == "auc 0.8500 instead of 0.9000 (difference -0.0612 to +0.0000)"


def test_metrics_of_classes_compare_with_the_largest_number():
    codes = DRAW.integers(0, 3, (300, 1))
    right = np.eye(3)[codes[:, 0]]
    [found] = paired_metrics(codes.astype(float), right, np.roll(right, 1, axis=1), ["categorical_accuracy"])
    assert (found.champion, found.challenger, found.verdict) == (1.0, 0.0, "worse")


def test_precision_says_nothing_of_a_model_that_never_says_yes():
    """It may have been one row that the champion said yes to: the recall tells if that is a difference."""
    once = GOOD * 0.4
    once[0] = 0.9
    precision, recall = paired_metrics(LABELS, once, GOOD * 0.4, ["precision", "recall"])
    assert precision.text == "precision has no value for one of them, since no row counts for it"
    assert (precision.verdict, recall.verdict) == ("no difference shown", "no difference shown")
    assert precision.to_json()["challenger"] is None
