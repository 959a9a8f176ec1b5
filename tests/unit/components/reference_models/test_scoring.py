"""A reference model's scores are those that the Evaluator would give its answers."""

import math

import numpy as np
import pytest

from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.metric_values import results
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import METRICS
from slipway.components.reference_models.scoring import scores

pytestmark = [
    pytest.mark.slow,  # Keras starts
    pytest.mark.filterwarnings("default"),  # of TensorFlow's own imports
]

DRAW = np.random.default_rng(4)
ROWS = 400


def evaluated(names, answers, labels, weights):
    asked = Request(
        models=(ModelRequest("", "label", is_baseline=False, weight="" if weights is None else "w"),),
        slices=((),),
        metrics={name: METRICS[name].class_name for name in names},
    )
    tally = Tally(asked)
    tally.add({}, [Judged(labels, answers, weights)], first=0)
    return {name: value for (_, name), value in results(asked, tally)[()].items() if math.isfinite(value)}


def scored(names, answers, labels, weights):
    return scores({name: METRICS[name].class_name for name in names}, answers, labels, weights)


def test_an_error_of_numbers_is_not_told_of_answers_for_each_class():
    """Its label is then a vector for the model that is judged, and the number of a class here."""
    names = ("mean_squared_error", "root_mean_squared_error", "sparse_categorical_accuracy")
    assert scored(names, np.eye(3)[[0, 1]], np.array([0.0, 1.0]), None) == {
        "sparse_categorical_accuracy": 1.0
    }


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("classes", [1, 3])
def test_scores_are_the_evaluator_s(classes, has_weights):
    kinds = ("one", "numbers", None) if classes == 1 else ("classes", None)
    names = [name for name, metric in METRICS.items() if metric.outputs in kinds]
    labels = DRAW.integers(0, max(classes, 2), ROWS).astype(float)
    answers = DRAW.dirichlet(np.ones(3), ROWS) if classes > 1 else np.clip(labels * 0.4, 0.3, 1)[:, None]
    answers = np.clip(answers + 0.3 * DRAW.random(answers.shape), 0, 1).astype(np.float32)
    weights = DRAW.choice([0.0, 1.0, 3.0], ROWS) if has_weights else None
    dense = [name for name in names if name.startswith(("categorical", "top_k"))]
    one_hot = np.eye(3)[labels.astype(int)]
    expected = evaluated(dense, answers, one_hot, weights) if dense else {}
    expected |= evaluated([name for name in names if name not in dense], answers, labels[:, None], weights)
    assert scored(names, answers, labels, weights) == pytest.approx(expected, rel=2e-3, abs=1e-6)


def test_what_has_no_value_is_left_out():
    names = ["auc", "precision", "recall", "f1_score", "mean_absolute_percentage_error"]
    low = np.full((4, 1), 0.1, np.float32)
    assert scored(names, low, np.zeros(4), None) == {}
    assert set(scored(names, low, np.array([0, 0, 0, 1]), None)) == {*names} - {"precision"}
    assert scored(names, low, np.array([0, 0, 0, 1]), np.array([1, 1, 1, 0])) == {}
    assert set(scored(names, 9 * low, np.zeros(4), None)) == {"precision", "f1_score"}


def test_area_of_rare_events_is_measured_as_finely_as_the_evaluator_s():
    """All answers lie below 0.02, between four of Keras' own thresholds."""
    labels = (DRAW.random(20_000) < 0.01).astype(float)
    answers = 0.01 * (0.3 + DRAW.random(20_000)) + 0.003 * labels
    answers = answers.astype(np.float32)[:, None]
    expected = evaluated(["auc"], answers, labels[:, None], None)
    assert scored(["auc"], answers, labels, None) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("weights", [None, DRAW.choice([1.0, 3.0], ROWS)])
def test_numbers_below_zero_are_scored_as_the_evaluator_does(weights):
    labels = DRAW.exponential(size=ROWS)
    answers = (labels + DRAW.normal(size=ROWS)).astype(np.float32)[:, None]
    assert (answers < -1).any()
    assert ((answers < 0) & (answers > -1)).any()
    names = ["mean_squared_logarithmic_error", "root_mean_squared_error", "log_cosh_error", "poisson"]
    expected = evaluated(names, answers, labels[:, None], weights)
    assert expected.keys() == {*names[1:3]}, "the logarithm of a negative number is none"
    assert scored(names, answers, labels, weights) == pytest.approx(expected, rel=1e-4)
    above = np.maximum(answers, np.float32(-0.9))
    expected = evaluated(names[:1], above, labels[:, None], weights)
    assert scored(names[:1], above, labels, weights) == pytest.approx(expected, rel=1e-4)


def test_an_answer_without_a_logarithm_adds_nothing_to_rows_that_count():
    answers, labels = np.array([[3.0], [-5.0]], np.float32), np.array([3.0, 3.0])
    names = ["mean_squared_logarithmic_error"]
    assert scored(names, answers, labels, np.array([1.0, 0.0])) == {names[0]: pytest.approx(0.0)}
    assert scored(names, answers, labels, None) == {}


def test_two_classes_are_two_answers_where_a_metric_takes_one_for_each():
    answers, labels = np.array([[0.9], [0.2], [0.7]], np.float32), np.array([1.0, 0.0, 0.0])
    found = scored(["sparse_categorical_accuracy", "categorical_accuracy"], answers, labels, None)
    assert found == pytest.approx(dict.fromkeys(found, 2 / 3))
