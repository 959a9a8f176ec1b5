"""Scores of constant answers."""

import math
import random
import statistics
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from evaluated import best_of, evaluated, weighed
from sklearn.metrics import mean_pinball_loss

from slipway.components.metrics.definitions import METRICS
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.trivial_scores import (
    LABEL_PREFIX,
    LabelStatistics,
    constant_area,
    majority_per_slice,
    trivial_answer,
    trivial_value,
)

TAXI = LabelStatistics.of_counts({0: 775, 1: 225})


@pytest.mark.parametrize("seed", range(30))
def test_statistics_are_those_of_the_labels_themselves(seed):
    drawn = random.Random(seed)  # noqa: S311 (a sample, no secret)
    labels = [drawn.choice([0, 1, 2, 5]) if seed % 2 else drawn.gauss(3, 2) for _ in range(101)]
    found = LabelStatistics.of_counts({label: labels.count(label) for label in labels})
    assert found.mean == pytest.approx(statistics.fmean(labels))
    assert found.variance == pytest.approx(statistics.pvariance(labels))
    median = statistics.median(labels)
    assert found.absolute_deviation == pytest.approx(statistics.fmean(abs(x - median) for x in labels))
    shares = [labels.count(label) / 101 for label in set(labels)]
    assert (found.majority_share, found.classes) == (max(shares), len(shares))
    assert found.entropy == pytest.approx(-sum(share * math.log(share) for share in shares))


def test_statistics_are_read_from_the_evaluation_where_it_has_them_all():
    measured = {f"label_{name}": value for name, value in vars(TAXI).items()}
    assert LabelStatistics.from_metrics({**measured, "auc": 0.9}) == TAXI
    del measured["label_entropy"]
    assert LabelStatistics.from_metrics(measured) is None


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("binary_accuracy", 0.775),
        ("sparse_categorical_accuracy", 0.775),
        ("auc", 0.5),
        ("precision", 0.225),
        ("recall", None),
        ("not_of_ours", None),
        ("mean_squared_error", 0.225 * 0.775),
        ("root_mean_squared_error", math.sqrt(0.225 * 0.775)),
        ("mean_absolute_error", 0.225),
        ("binary_crossentropy", -(0.225 * math.log(0.225) + 0.775 * math.log(0.775))),
    ],
)
def test_best_constant_answer_has_its_value(metric, value):
    assert trivial_value(metric, TAXI) == (None if value is None else pytest.approx(value))


GRID = [[share] for share in np.linspace(0, 1, 101)]
DRAW = np.random.default_rng(3)
WEIGHTS = DRAW.choice([0.0, 0.5, 1.0, 7.0], 60)
BINARY = DRAW.choice([0.0, 1.0], (60, 1), p=[0.7, 0.3])
SHARES = DRAW.choice([0.0, 0.2, 0.3, 1.0], (60, 1), p=[0.1, 0.3, 0.4, 0.2])
LIKELY = 1 - SHARES


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize("labels", [BINARY, SHARES, LIKELY], ids=["binary", "shares", "likely"])
@pytest.mark.parametrize(
    "metric",
    [
        "binary_accuracy",
        "binary_crossentropy",
        "mean_squared_error",
        "root_mean_squared_error",
        "mean_absolute_error",
        "auc",
    ],
)
def test_no_constant_number_scores_better_than_the_trivial_value(metric, labels, weights):
    best, statistics_of_labels = best_of(metric, labels, GRID, weights=weights)
    assert trivial_value(metric, statistics_of_labels) == pytest.approx(best, rel=1e-3)


THREE = DRAW.choice([0.0, 1.0, 2.0], (60, 1), p=[0.8, 0.15, 0.05])
MULTI = (DRAW.random((60, 3)) < [0.9, 0.3, 0.1]).astype(float)
ORDERS = [[0.9 if each == place else 0.1 * each for each in range(3)] for place in range(3)]
ORDERS += [[0.1 * each for each in order] for order in permutations(range(3))]
ORDERS += [[0.2, 0.2, 0.1], [0.1, 0.2, 0.2], [0.2, 0.1, 0.2], [0.2, 0.2, 0.2], [0.2, 0.1, 0.1]]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize(
    "labels",
    [THREE, np.eye(3)[THREE[:, 0].astype(int)], MULTI, np.where(THREE == 2, -1, THREE)],
    ids=["classes", "vectors", "several", "unknown"],
)
def test_no_constant_answer_to_several_classes_has_a_larger_area(labels, weights):
    best, of_labels = best_of("auc", labels, ORDERS, weights=weights)
    assert trivial_value("auc", of_labels) == pytest.approx(best, abs=1e-6)
    assert best > 0.6


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize(
    "labels",
    [THREE, np.eye(3)[THREE[:, 0].astype(int)], MULTI, 0.5 * MULTI, np.where(THREE == 2, -1, THREE)],
    ids=["classes", "vectors", "several", "shares", "unknown"],
)
def test_no_constant_answer_to_several_classes_has_a_larger_precision(labels, weights):
    answers = [each for each in product([0.0, 1.0], repeat=3) if any(each)]
    best, of_labels = best_of("precision", labels, answers, weights=weights)
    assert trivial_value("precision", of_labels) == pytest.approx(best)
    assert trivial_answer("precision", of_labels) == "always answering only the most frequent class"


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize("labels", [BINARY, SHARES, LIKELY], ids=["binary", "shares", "likely"])
def test_always_yes_has_the_precision_of_the_trivial_value(labels, weights):
    best, of_labels = best_of("precision", labels, [[1.0]], weights=weights)
    assert trivial_value("precision", of_labels) == pytest.approx(best)
    assert trivial_answer("precision", of_labels) == "always answering 1"


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
def test_two_answers_to_two_classes_have_an_area_of_their_shares(weights):
    best, of_labels = best_of("auc", BINARY, [[0.2, 0.1], [0.1, 0.2], [0.1, 0.1]], weights=weights)
    assert trivial_value("auc", of_labels) == pytest.approx(best, abs=1e-6)
    assert best > 0.55
    assert not of_labels.has_area_of_two_classes


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
def test_no_constant_answer_to_classes_scores_better_than_the_trivial_value(weights):
    shares = [(a / 60, b / 60, (60 - a - b) / 60) for a in range(1, 59) for b in range(1, 60 - a)]
    answers = [*shares[::7], (0.8, 0.15, 0.05), *np.eye(3)]
    for metric in ("sparse_categorical_crossentropy", "sparse_categorical_accuracy"):
        best, of_labels = best_of(metric, THREE, answers, weights=weights)
        assert trivial_value(metric, of_labels) == pytest.approx(best, rel=0.01)


def test_text_that_no_class_is_known_for_is_no_answer_of_a_constant():
    labels = np.repeat([-1.0, 0.0, 1.0, 2.0], [50, 10, 30, 10])[:, None]
    best, of_labels = best_of("sparse_categorical_accuracy", labels, np.eye(3))
    assert best == trivial_value("sparse_categorical_accuracy", of_labels) == 0.3
    assert trivial_answer("sparse_categorical_accuracy", of_labels, ["a", "b", "c"]) == "always answering b"
    _, of_signs = best_of("hinge", np.repeat([-1.0, 1.0], [7, 3])[:, None], [[0.5]])
    assert (of_signs.majority, of_signs.majority_share) == (-1, 0.7)
    _, unknown = best_of("sparse_categorical_accuracy", np.full((5, 1), -1.0), np.eye(3))
    assert (unknown.majority, unknown.classes) == (-1, 1)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize("shares", [(0.5, 0.1, 0.4), (0.3, 0.3, 0.4), (0.1, 0.6, 0.3), (0, 0.6, 0.4)])
def test_vector_of_zeros_counts_for_a_constant_as_the_accuracy_takes_it(shares, weights):
    labels = np.array([[1, 0], [0, 1], [0, 0]], float)[DRAW.choice(3, 60, p=shares)]
    best, of_labels = best_of("categorical_accuracy", labels, np.eye(2), weights=weights)
    assert trivial_value("categorical_accuracy", of_labels) == pytest.approx(best)


OF_ENTRIES = ("mean_squared_error", "root_mean_squared_error", "mean_absolute_error")


def test_a_number_of_a_vector_that_rows_lack_counts_by_the_rows_that_have_it():
    labels = np.array([[0.0, 10.0], [4.0, np.nan], [0.0, np.nan], [4.0, np.nan]])
    value, known = evaluated("mean_squared_error", labels, np.tile([2.0, 10.0], (4, 1)))
    assert trivial_value("mean_squared_error", known) == value == pytest.approx(4 * 4 / 5)


def test_probabilities_of_classes_are_held_against_the_classes_shares():
    labels = np.eye(3)[DRAW.choice(3, 60, p=[0.6, 0.3, 0.1])]
    value, known = evaluated("mean_squared_error", labels, np.tile(labels.mean(axis=0), (60, 1)))
    assert trivial_value("mean_squared_error", known) == pytest.approx(value, rel=1e-6)


def test_numbers_of_a_vector_that_were_not_counted_one_by_one_are_compared_with_nothing():
    labels = replace(LabelStatistics.of_counts({0: 5, 100: 5}), entries=2.0)
    assert [trivial_value(metric, labels) for metric in OF_ENTRIES] == [None, None, None]
    assert LabelStatistics.of_counts({0: 5, 100: 5}).squared_error == 2500
    _, wide = evaluated("mean_squared_error", np.ones((2, 1025)) * [[1], [2]], np.ones((2, 1025)))
    assert (wide.entries, wide.squared_error) == (1025, None)


def test_area_of_a_constant_by_hand():
    assert constant_area([900, 50, 50], 1000) == pytest.approx(0.925)
    assert constant_area([10, 10], 20) == 0.5
    assert math.isnan(constant_area([0, 0], 20))
    assert math.isnan(constant_area([20, 20], 20))


def test_constant_answer_to_labels_that_are_shares_is_told():
    _, shares = best_of("binary_accuracy", SHARES, [[0.5]])
    _, likely = best_of("binary_accuracy", LIKELY, [[0.5]])
    told = trivial_answer("binary_accuracy", shares), trivial_answer("binary_accuracy", likely)
    assert told == ("always answering 0", "always answering 1")
    assert trivial_answer("binary_crossentropy", TAXI) == "always answering the shares of the classes"
    assert trivial_answer("binary_crossentropy", shares) == f"always answering {SHARES.mean():.4g}, the mean"
    assert trivial_value("binary_crossentropy", LabelStatistics.of_counts({2: 5, 3: 5})) is None


def test_column_is_worth_the_likelier_answer_of_each_of_its_values():
    slices = {"pay=Cash": LabelStatistics.of_counts({0.2: 50, 0.4: 50})}
    assert majority_per_slice(slices, "binary_accuracy") == {"pay": pytest.approx(0.7)}


def test_precision_of_several_classes_has_no_known_constant():
    assert trivial_value("precision", LabelStatistics.of_counts({0: 5, 1: 5, 2: 5})) is None


def test_each_trivial_value_is_known_by_its_name():
    needed = {metric.trivial for metric in METRICS.values()} - {None}
    known = {METRICS[name].trivial for name in METRICS if trivial_value(name, TAXI) is not None}
    of_groups = {name for name in needed if name.startswith("random_")}
    assert known == needed - {"pinball_loss"} - of_groups, "which need quantiles, and groups"
    assert of_groups == {f"random_{name}" for name in METRICS if METRICS[name].outputs == "ranks"}


def test_always_the_same_quantiles_is_what_a_constant_scores():
    draw = np.random.default_rng(1)
    labels, levels = draw.integers(0, 40, 500).astype(float), [0.1, 0.5, 0.9]
    counts = dict(zip(*np.unique(labels, return_counts=True), strict=True))
    found = LabelStatistics.of_counts(counts, quantiles=levels)
    best = [
        min(mean_pinball_loss(labels, np.full(500, answer), alpha=each) for answer in np.unique(labels))
        for each in levels
    ]
    assert trivial_value("pinball_loss", found) == pytest.approx(np.mean(best))
    assert trivial_answer("pinball_loss", found) == "always answering the same quantiles"
    prefixed = {LABEL_PREFIX + name: value for name, value in found.known().items()}
    assert LabelStatistics.from_metrics(prefixed) == found
    assert "pinball_loss" not in TAXI.known()


def test_a_class_that_does_not_occur_has_no_rows():
    for squares in (None, {0: 10.0}):
        zeros = LabelStatistics.of_counts({0: 10.0}, squares=squares)
        assert (zeros.positives, zeros.negatives) == (0, 10)


def test_both_classes_have_rows_however_little_one_weighs():
    assert TAXI.rows_by_class == (225, 775)
    thinned = LabelStatistics.of_counts({0: 200_000, 1: 20}, squares={0: 20_000_000, 1: 20})
    assert thinned.rows_by_class == (20, 2000)
    light = LabelStatistics.of_counts({0: 1.0, 1: 1e-200}, squares={0: 0.5, 1: 0.0})
    assert light.rows_by_class == (1, 2)


def test_few_heavy_rows_of_a_class_are_no_more_than_they_are():
    heavy = weighed(10, 1000, of_positives=100)
    assert heavy.rows_by_class == weighed(10, 1000).rows_by_class == (10, 1000)


def test_majorities_of_slices_are_put_together_by_what_their_rows_weigh():
    slices = {"pay=Cash": weighed(0, 100, of_negatives=3), "pay=Card": weighed(50, 50)}
    assert majority_per_slice(slices) == {"pay": (300 + 50) / 400}
    # By Kish's number a slice with one heavy row would hardly count.
    counts, squares = {0: 190, 1: 10}, {0: 100 * 100 + 90, 1: 10}
    uneven = LabelStatistics.of_counts(counts, squares=squares)
    assert uneven.rows < 4
    found = majority_per_slice({"pay=Cash": uneven, "pay=Card": weighed(100, 100)})
    assert found == {"pay": (190 + 100) / 400}


def test_rows_without_a_label_are_not_taken_for_weights():
    labels = LabelStatistics.of_counts({0: 400, 1: 300})
    assert Measured({"example_count": 1000.0}, {}, labels).rows_in_words == "1,000 rows"
    alike = weighed(300, 400, of_positives=0.1, of_negatives=0.1)
    at = Measured({"example_count": 1000.0}, {}, alike)
    assert (at.rows_in_words, at.effective_rows) == ("1,000 rows", pytest.approx(700))
    unlike = Measured({"example_count": 1000.0}, {}, weighed(300, 400, of_positives=9))
    assert unlike.effective_rows == pytest.approx(unlike.labels.rows)
    assert unlike.rows_in_words == f"1,000 rows, worth {unlike.labels.rows:.0f} by their weights"


def test_rows_of_several_labels_are_worth_no_more_than_there_are():
    # 100 rows of five labels each: half of the rows weigh 1, half 3.
    of_five = LabelStatistics.of_counts({0: 600, 1: 400}, squares={0: 1500, 1: 1000}, count=500)
    at = Measured({"example_count": 100.0}, {}, of_five)
    assert of_five.rows == 400
    assert (at.effective_rows, at.rows_in_words) == (80, "100 rows, worth 80 by their weights")
