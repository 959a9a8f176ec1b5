"""Single rows by hand; whether it is all as the libraries compute it, tests/integration/evaluator/ asks."""

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from slipway.components.errors import ComponentError
from slipway.components.evaluator.ranking import RANKINGS
from slipway.components.metrics.definitions import CONFUSION, CURVES, METRICS
from slipway.components.metrics.row_values import HINGES, MEANS, confusion, of_quantiles, one_hot, shares


def of_row(name, label, answer):
    first, *rest = MEANS[name](np.atleast_2d(label).astype(float), np.atleast_2d(answer).astype(float))[0]
    assert rest == [1.0]
    return first


def test_there_is_one_formula_for_every_metric_of_the_table():
    groups = [CONFUSION, CURVES, HINGES, MEANS, of_quantiles([0.5]), RANKINGS]
    for name, metric in METRICS.items():
        places = sum(metric.class_name in group for group in groups)
        assert places == 1, (
            f"{name}: name its confusion in definitions.py, or add its formula to row_values.py"
        )
    assert set().union(*groups) == {metric.class_name for metric in METRICS.values()}


def test_metrics_of_quantiles_are_those_of_scikit_learn_and_what_they_say():
    draw = np.random.default_rng(2)
    labels, levels = draw.normal(size=(50, 1)), [0.1, 0.5, 0.8]
    answers = np.sort(draw.normal(size=(50, 3)), axis=1)
    answers[:5] = answers[:5, ::-1]
    found = {name: formula(labels, answers)[:, 0].mean() for name, formula in of_quantiles(levels).items()}
    losses = [mean_pinball_loss(labels, answers[:, [at]], alpha=each) for at, each in enumerate(levels)]
    assert found["PinballLoss"] == pytest.approx(np.mean(losses))
    inside = (answers.min(1) <= labels[:, 0]) & (labels[:, 0] <= answers.max(1))
    assert found["IntervalCoverage"] == pytest.approx(inside.mean())
    assert found["QuantileCrossing"] == pytest.approx(0.1)
    assert found["IntervalWidth"] == pytest.approx((answers.max(1) - answers.min(1)).mean())


@pytest.mark.parametrize("answers", [[[0.1, np.nan, 0.9]], [[np.nan, 0.5, 0.9]]])
def test_quantile_that_is_no_number_makes_no_metric_of_quantiles_a_number(answers):
    for name, formula in of_quantiles([0.1, 0.5, 0.9]).items():
        assert np.isnan(formula(np.array([[0.5]]), np.array(answers))[0, 0]), name


@pytest.mark.parametrize(
    ("name", "label", "answer", "expected"),
    [
        ("Accuracy", [1], [1], 1),
        ("Accuracy", [1], [0.9], 0),
        ("BinaryCrossentropy", [1], [0.5], np.log(2)),
        ("BinaryCrossentropy", [0], [1], 15.33),  # in float64 it were 15.42
        ("CategoricalAccuracy", [0, 1, 0], [0.1, 0.7, 0.2], 1),
        ("SparseCategoricalAccuracy", [2], [0.1, 0.7, 0.2], 0),
        ("SparseCategoricalCrossentropy", [1], [0.25, 0.5, 0.25], np.log(2)),
        ("SparseTopKCategoricalAccuracy", [0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 0),
        ("SparseTopKCategoricalAccuracy", [1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1),
        ("SparseTopKCategoricalAccuracy", [1], [0.1, 0.2, np.nan, 0.4, 0.5, 0.6], 0),
        ("TopKCategoricalAccuracy", [0, 1], [0.1, 0.2], 1),
        ("CategoricalHinge", [0, 1], [0.25, 0.75], 0.5),
        ("CosineSimilarity", [3, 4], [4, 3], 0.96),
        ("KLDivergence", [0.5, 0.5], [0.25, 0.25], np.log(2)),
        ("LogCoshError", [1], [3], np.log(np.cosh(2))),
        ("MeanAbsoluteError", [1], [3], 2),
        ("MeanAbsolutePercentageError", [2], [3], 50),
        ("MeanSquaredError", [1], [3], 4),
        ("MeanSquaredLogarithmicError", [0], [np.e - 1], 1),
        ("Poisson", [2], [1], 1),
        ("RootMeanSquaredError", [1], [3], 4),
    ],
)
def test_one_row(name, label, answer, expected):
    assert of_row(name, label, answer) == pytest.approx(expected, abs=0.01)


def test_percentage_of_a_label_of_zero_is_not_counted():
    assert MEANS["MeanAbsolutePercentageError"](np.array([[0.0]]), np.array([[3.0]])).tolist() == [[0, 0]]


def test_answer_without_a_logarithm_is_an_infinite_error_and_no_row_less():
    labels, answers = np.array([[3.0], [3.0], [-2.0]]), np.array([[3.0], [-1.5], [3.0]], np.float32)
    found = MEANS["MeanSquaredLogarithmicError"](labels, answers)
    assert found.round(9).tolist() == [[0, 1], [np.inf, 1], [0, 0]]


def test_hinge_takes_labels_of_0_and_1_as_signs_and_says_whether_there_are_others():
    as_they_are, as_signs, others, rows = HINGES["Hinge"](
        np.array([[0.0], [2.0]]), np.array([[0.5], [0.5]])
    ).T
    assert as_they_are.tolist() == [1.0, 0.0]
    assert as_signs.tolist() == [1.5, 0.0]
    assert (others.tolist(), rows.tolist()) == ([0, 1], [1, 1])


def test_counts_above_one_half_are_of_all_classes_and_of_shares():
    answers = np.array([[0.6], [0.5], [np.nan], [0.9]])
    found = confusion(np.array([[1.0], [1.0], [0.0], [0.25]]), answers)
    assert found.tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0.25, 0, 0.75, 0]]
    assert confusion(np.array([[1]]), np.array([[0.1, 0.7, 0.6]])).tolist() == [[1, 1, 1, 0]]


def test_class_becomes_a_one_and_the_unknown_class_none():
    answers = np.zeros((3, 2))
    assert one_hot(np.array([[1], [0], [-1]]), answers).tolist() == [[0, 1], [1, 0], [0, 0]]
    many = one_hot(np.array([[7]]), np.zeros((1, 500_000)))
    assert (many.argmax(), many.sum()) == (7, 1), "a square of the classes would be 2 TB"


@pytest.mark.parametrize("formula", [one_hot, MEANS["SparseCategoricalCrossentropy"]])
def test_label_outside_of_the_classes_is_reported(formula):
    with pytest.raises(
        ComponentError, match="a label of the eval split is 4, and the model has 3 classes, 0 to 2"
    ):
        formula(np.array([[0.0], [4.0]]), np.full((2, 3), 0.3))


@pytest.mark.parametrize("label", [1.5, -1.0, np.nan])
def test_label_that_is_no_share_cannot_be_counted_as_a_positive(label):
    with pytest.raises(
        ComponentError, match=f"a label of the eval split is {label:g}, and a metric that counts"
    ):
        shares(np.array([[1.0], [label]]))
    with pytest.raises(ComponentError, match=f"is {label:g}, and a metric that counts positives needs"):
        MEANS["BinaryCrossentropy"](np.array([[1.0], [label]]), np.array([[0.5], [0.5]]))
