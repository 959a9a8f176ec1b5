"""What a constant answer scores, and whether the model beats it."""

import math
import random
import statistics

import pytest

from components.model_gate.metrics import METRICS
from components.model_gate.rules import Limits, Measured
from components.model_gate.trivial import LabelStatistics, majority_per_slice, trivial_value
from components.model_gate.trivial_rules import trivial_checks, trivial_document

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
    assert found.majority_share == max(labels.count(label) for label in labels) / 101


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("binary_accuracy", 0.775),
        ("sparse_categorical_accuracy", 0.775),
        ("auc", 0.5),
        ("precision", 0.225),
        ("recall", None),
        ("mean_squared_error", 0.225 * 0.775),
        ("root_mean_squared_error", math.sqrt(0.225 * 0.775)),
        ("mean_absolute_error", 0.225),
        ("binary_crossentropy", -(0.225 * math.log(0.225) + 0.775 * math.log(0.775))),
    ],
)
def test_best_constant_answer_has_its_value(metric, value):
    assert trivial_value(metric, TAXI) == (None if value is None else pytest.approx(value))


def test_each_trivial_value_is_known_by_its_name():
    needed = {metric.trivial for metric in METRICS.values()} - {None}
    known = {METRICS[name].trivial for name in METRICS if trivial_value(name, TAXI) is not None}
    assert known == needed


def test_column_alone_is_worth_the_majorities_of_its_values():
    slices = {
        "overall": TAXI,
        "pay=Cash": LabelStatistics.of_counts({0: 500}),
        "pay=Card": LabelStatistics.of_counts({0: 200, 1: 300}),
        "pay=Cash, hour=1": LabelStatistics.of_counts({0: 3, 1: 1}),
    }
    assert majority_per_slice(slices) == {"pay": 0.8, "pay, hour": 0.75}
    document = trivial_document(["binary_accuracy"], {n: Measured({}, {}, s) for n, s in slices.items()})
    assert document["overall"]["binary_accuracy"]["the majority of each pay"] == 0.8


def check(metrics, *, labels=TAXI, beat="one", classes=(), **limits):
    at = Measured({"example_count": labels.rows, **metrics}, {}, labels)
    return trivial_checks(list(metrics), limits, at, beat=beat, classes=classes)[0]


def stops(checks):
    return any(not each.passed and each.stops for each in checks)


# The rows: accuracy and area of a binary model on 775 and 225 labels, and whether it has learned.
@pytest.mark.parametrize(
    ("accuracy", "auc", "one", "every"),
    [
        (0.775, 0.5, False, False),
        (0.775, 0.53, False, False),
        (0.79, 0.5, False, False),
        (0.775, 0.56, True, False),
        (0.774, 0.9, False, False),
        (0.60, 0.9, False, False),
        (0.83, 0.5, True, False),
        (0.83, 0.49, False, False),
        (0.89, 0.95, True, True),
        (0.89, math.nan, True, False),
    ],
)
def test_model_must_surely_beat_the_constant_answer(accuracy, auc, one, every):
    metrics = {"binary_accuracy": accuracy, "auc": auc}
    assert stops(check(metrics)) is not one
    assert stops(check(metrics, beat="all")) is not every
    assert not stops(check(metrics, beat="none"))


def test_model_that_always_says_no_is_refused_with_what_that_scores():
    [refused] = check({"binary_accuracy": 0.775})
    assert refused.reason == "binary_accuracy 0.775, needs above 0.775 (always answering 0)"


def test_model_that_a_constant_outdoes_in_one_metric_is_refused_for_that_one_alone():
    found = check({"binary_accuracy": 0.77, "auc": 0.9})
    assert [each.reason for each in found if each.stops and not each.passed] == [
        "binary_accuracy 0.77, needs above 0.775 (always answering 0)"
    ]


@pytest.mark.parametrize(
    ("metric", "worse"),
    [
        ("mean_squared_error", 0.18),
        ("root_mean_squared_error", 0.42),
        ("mean_absolute_error", 0.23),
        ("binary_crossentropy", 0.54),
        ("precision", 0.2),
    ],
)
def test_model_that_is_sure_in_one_metric_may_be_worse_than_a_constant_in_no_other(metric, worse):
    assert stops(check({"auc": 0.9, metric: worse}))
    assert not stops(check({"auc": 0.9, metric: worse}, beat="none"))


def test_classes_are_told_by_their_names():
    [refused] = check({"binary_accuracy": 0.6}, classes=("stays", "goes"))
    assert refused.required == "above 0.775 (always answering stays)"
    [precision] = check({"precision": 0.1}, classes=("stays", "goes"))
    assert precision.required == "above 0.225 (always answering goes)"
    [one] = check({"auc": 0.9}, labels=LabelStatistics.of_counts({1: 500}), classes=("stays", "goes"))
    assert one.found == "is always goes"
    slices = {"overall": Measured({}, {}, TAXI)}
    document = trivial_document(["binary_accuracy"], slices, ("stays", "goes"))
    assert list(document["overall"]["binary_accuracy"]) == ["always answering stays"]


def test_few_rows_are_named_where_they_are_the_reason():
    few = LabelStatistics.of_counts({0: 30, 1: 10})
    [refused] = check({"binary_accuracy": 0.8}, labels=few)
    assert "more rows in the eval split help" in refused.reason


@pytest.mark.parametrize(("error", "passes"), [(0.1, True), (0.17, True), (0.175, False), (0.5, False)])
def test_error_must_lie_below_that_of_the_mean(error, passes):
    [found] = check({"mean_squared_error": error})
    assert found.passed is passes


@pytest.mark.parametrize(
    ("metric", "limits", "says_nothing"),
    [
        ("binary_accuracy", Limits(min=0.6), True),
        ("binary_accuracy", Limits(min=0.775), True),
        ("binary_accuracy", Limits(min=0.78), False),
        ("binary_accuracy", Limits(max_drop=0.1), False),
        ("auc", Limits(min=0.5), True),
        ("auc", Limits(min=0.7), False),
        ("mean_absolute_error", Limits(max=0.3), True),
        ("mean_absolute_error", Limits(max=0.2), False),
    ],
)
def test_threshold_that_a_constant_answer_meets_is_a_finding(metric, limits, says_nothing):
    value = 0.9 if METRICS[metric].better == "higher" else 0.01
    findings = [c for c in check({metric: value}, **{metric: limits}) if c.metric.startswith("threshold ")]
    assert [c.passed for c in findings] == [False] * says_nothing
    assert not stops(findings)


def test_one_label_only_is_refused_for_nothing_can_be_learned_from_it():
    [refused] = check({"auc": 0.9}, labels=LabelStatistics.of_counts({0: 500}))
    assert stops([refused])
    assert "needs more than one value" in refused.reason


def test_metrics_without_a_known_constant_are_told():
    at = Measured({"hinge": 0.1}, {}, TAXI)
    checks, notes = trivial_checks(["hinge"], {}, at, beat="one")
    assert (checks, len(notes)) == ([], 1)


def test_ten_classes_are_compared_with_the_most_frequent():
    ten = LabelStatistics.of_counts(dict.fromkeys(range(10), 36))
    [guess] = check({"sparse_categorical_accuracy": 0.11}, labels=ten)
    [learned] = check({"sparse_categorical_accuracy": 0.96}, labels=ten)
    assert (guess.passed, learned.passed) == (False, True)
