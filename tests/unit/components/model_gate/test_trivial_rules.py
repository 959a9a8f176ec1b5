"""A model must surely be worth more than a constant answer."""

import math
from dataclasses import replace

import numpy as np
import pytest
from evaluated import best_of, evaluated, weighed

from slipway.components.metrics.definitions import METRICS
from slipway.components.model_gate.interval_formulas import Spread, auc_of_chance
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.threshold_rules import Threshold, threshold_checks
from slipway.components.model_gate.trivial_rules import (
    checks_of_outputs,
    trivial_checks,
    trivial_document,
)
from slipway.components.model_gate.trivial_scores import (
    LabelStatistics,
    majority_per_slice,
    trivial_value,
)
from slipway.components.model_gate.verdict import Check

TAXI = LabelStatistics.of_counts({0: 775, 1: 225})
DRAW = np.random.default_rng(3)
WEIGHTS = DRAW.choice([0.0, 0.5, 1.0, 7.0], 60)


def test_two_answers_of_which_the_majority_is_always_chosen_are_no_precision_to_be_blessed_for():
    labels = np.repeat([0.0, 1.0], [900, 100])[:, None]
    precision, of_labels = evaluated("precision", labels, np.tile(np.float32([0.9, 0.1]), (1000, 1)))
    assert precision == pytest.approx(0.9)
    at = Measured({"precision": precision}, {}, of_labels, spreads={"precision": Spread(0.01, 63)})
    assert stops(trivial_checks(["precision"], {}, at, beat="one")[0])


@pytest.mark.parametrize(("classes", "told"), [(2, 1), (3, 0)])
def test_area_of_both_answers_to_a_yes_or_no_is_told_to_be_of_both(classes, told):
    labels = np.arange(60.0)[:, None] % classes
    answers = np.full((60, classes), 1 / classes, np.float32)
    auc, of_classes = evaluated("auc", labels, answers)
    at = Measured({"auc": auc, "recall": 0.5, "binary_crossentropy": 0.7}, {}, of_classes)
    _, notes = trivial_checks(list(at.metrics), {}, at, beat="one")
    assert [each.partition(",")[0] for each in notes if "both classes" in each] == ["auc"] * told
    # TensorFlow Model Analysis tells what chance has of them also where no such metric is asked for.
    at = Measured({"sparse_categorical_accuracy": 0.5}, {}, of_classes)
    notes += trivial_checks(list(at.metrics), {}, at, beat="one")[1]
    assert len([each for each in notes if "both classes" in each]) == told
    _, notes = trivial_checks(["auc"], {}, Measured({"auc": 0.5}, {}, TAXI), beat="one")
    assert not any("both classes" in each for each in notes)


VECTORS = np.stack([DRAW.normal(size=60), 100 + DRAW.choice([0.0, 3.0], 60), 7 * DRAW.random(60)], axis=1)
OF_ENTRIES = ("mean_squared_error", "root_mean_squared_error", "mean_absolute_error")


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["rows", "weights"])
@pytest.mark.parametrize("metric", OF_ENTRIES)
def test_of_a_vector_no_constant_is_better_than_the_middle_of_each_number(metric, weights):
    """Of all numbers together, the middle misses each: a model without knowledge would beat it by far."""
    counted = np.repeat(VECTORS, np.ones(60, int) if weights is None else (2 * weights).astype(int), axis=0)
    middle = np.median(counted, axis=0) if metric == "mean_absolute_error" else counted.mean(axis=0)
    others = middle + DRAW.normal(size=(50, 3)) * [0.1, 0.3, 0.5]
    best, labels = best_of(metric, VECTORS, [middle, *others], weights=weights)
    assert trivial_value(metric, labels) == pytest.approx(best, rel=1e-5)
    whole = Measured({metric: best, "example_count": 60.0}, {}, labels)
    [check], _ = trivial_checks([metric], {}, whole, beat="one")
    assert not check.passed
    assert "of each number of the label)" in check.required
    assert labels.entries == 3


@pytest.mark.parametrize("metric", ["ndcg", "ndcg_5", "ndcg_10", "mean_reciprocal_rank"])
def test_a_ranking_no_better_than_a_random_order_is_refused(metric):
    labels = replace(TAXI, **{f"random_{metric}": 0.6})
    [refused] = check({metric: 0.59}, labels=labels)
    assert refused.reason == f"{metric} 0.59, needs above 0.6 (a random order)"
    assert stops([refused])
    assert not stops(check({metric: 0.7}, labels=labels))


def test_column_alone_is_worth_the_majorities_of_its_values():
    slices = {
        "overall": TAXI,
        "pay=Cash": LabelStatistics.of_counts({0: 500}),
        "pay=Card": LabelStatistics.of_counts({0: 200, 1: 300}),
        "pay=Cash, hour=1": LabelStatistics.of_counts({0: 3, 1: 1}),
    }
    assert majority_per_slice(slices) == {"pay": 0.8, "pay, hour": 0.75}
    measured = {name: Measured({}, {}, labels) for name, labels in slices.items()}
    assert trivial_document(["hinge", "binary_accuracy", "auc"], measured) == {
        "overall": {
            "binary_accuracy": {
                "always answering 0": 0.775,
                "the majority of each pay": 0.8,
                "the majority of each pay, hour": 0.75,
            },
            "auc": {"answers drawn at random": 0.5},
        },
        "slices": {
            "binary_accuracy": {"pay=Cash": 1.0, "pay=Card": 0.6, "pay=Cash, hour=1": 0.75},
            "auc": dict.fromkeys(["pay=Cash", "pay=Card", "pay=Cash, hour=1"], 0.5),
        },
    }
    assert trivial_document(["auc"], {"pay=Cash": measured["pay=Cash"]}) == {}


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


def test_classes_are_reported_by_their_names():
    [refused] = check({"binary_accuracy": 0.6}, classes=("stays", "goes"))
    assert refused.required == "above 0.775 (always answering stays)"
    [precision] = check({"precision": 0.1}, classes=("stays", "goes"))
    assert precision.required == "above 0.225 (always answering goes)"
    [one] = check({"auc": 0.9}, labels=LabelStatistics.of_counts({1: 500}), classes=("stays", "goes"))
    assert one.found == "is always goes"
    slices = {"overall": Measured({}, {}, TAXI)}
    document = trivial_document(["binary_accuracy"], slices, {"": ("stays", "goes")})
    assert list(document["overall"]["binary_accuracy"]) == ["always answering stays"]


def test_line_break_in_the_name_of_a_class_begins_no_line():
    [refused] = check({"binary_accuracy": 0.6}, classes=("a\nhint: do", "b"))
    assert refused.required == r"above 0.775 (always answering a\nhint: do)"


FEW = LabelStatistics.of_counts({0: 30, 1: 10})


@pytest.mark.parametrize(
    ("labels", "metric", "got", "required", "note"),
    [
        (TAXI, "binary_accuracy", 0.9, "above 0.775 (always answering 0)", None),
        (TAXI, "binary_accuracy", 0.775, "above 0.775 (always answering 0)", ""),
        (TAXI, "auc", 0.9, "above 0.536, which 95% of random models stay below", None),
        (TAXI, "auc", 0.53, "above 0.536, which 95% of random models stay below", ""),
        (TAXI, "mean_squared_error", 0.1, "below 0.1744 (always answering 0.225, the mean)", None),
        (TAXI, "mean_squared_error", 0.2, "below 0.1744 (always answering 0.225, the mean)", ""),
        (TAXI, "root_mean_squared_error", 0.1, "below 0.4176 (always answering 0.225, the mean)", None),
        (TAXI, "precision", 0.3, "above 0.225 (always answering 1)", None),
        (TAXI, "mean_absolute_error", 0.1, "below 0.225 (always answering the median)", None),
        (
            TAXI,
            "binary_crossentropy",
            0.1,
            "below 0.5332 (always answering the shares of the classes)",
            None,
        ),
        # A few rows may be all that is wrong, and then they are named.
        (
            FEW,
            "binary_accuracy",
            0.8,
            "above 0.75 by more than chance (always answering 0)",
            "its lower bound is 0.6785 with 40 rows; more rows in the eval split help",
        ),
    ],
)
def test_check_tells_what_the_constant_answer_reaches(labels, metric, got, required, note):
    passed = note is None
    assert check({metric: got}, labels=labels) == [
        Check(metric, "overall", required, got, None, passed, stops=not passed, note=note or "")
    ]


def test_metric_without_a_value_passes_nothing_and_makes_no_model_worse():
    at = Measured({"auc": 0.9}, {}, TAXI)
    checks, _ = trivial_checks(["auc", "binary_accuracy", "mean_squared_error"], {}, at, beat="one")
    assert [(each.metric, each.passed, each.stops) for each in checks] == [
        ("auc", True, False),
        ("binary_accuracy", False, False),
        ("mean_squared_error", False, False),
    ]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("auc", auc_of_chance(225, 775, confidence=0.95)),
        ("precision", TAXI.mean),
        ("mean_squared_error", TAXI.variance),
    ],
)
def test_what_only_equals_the_constant_answer_does_not_beat_it(metric, value):
    assert [each.passed for each in check({metric: value})] == [False]


# The metrics come as sums of 32-bit numbers.
@pytest.mark.parametrize(("apart", "worse"), [(1e-7, False), (1e-5, True)])
def test_model_is_no_worse_than_a_constant_by_rounding(apart, worse):
    assert stops(check({"auc": 0.9, "binary_accuracy": 0.775 * (1 - apart)})) is worse


# Of TAXI's labels, 0.174375 is the variance; without bounds the value itself is judged.
@pytest.mark.parametrize(("apart", "passes"), [(1e-8, False), (1e-7, False), (1e-5, True)])
def test_a_constant_answer_is_not_better_than_itself_by_rounding(apart, passes):
    [found] = check({"mean_squared_error": 0.174375 * (1 - apart)})
    assert (found.passed, found.note) == (passes, "")


def test_always_the_shares_of_several_classes_is_no_area_to_be_blessed_for():
    labels = np.repeat([0.0, 1.0, 2.0], [900, 50, 50])[:, None]
    auc, of_classes = evaluated("auc", labels, np.tile(np.float32([0.9, 0.05, 0.04]), (1000, 1)))
    assert auc == pytest.approx(0.925)
    [constant] = check({"auc": auc}, labels=of_classes)
    assert constant.reason == "auc 0.925, needs above 0.925 (always answering the shares of the classes)"
    assert stops([constant])
    knows = np.where(np.arange(3) == labels, 0.9, 0.05).astype(np.float32)
    knows[:30] = 1 / 3
    auc, of_classes = evaluated("auc", labels, knows)
    at = Measured({"auc": auc}, {}, of_classes, spreads={"auc": Spread(0.001, 63)})
    assert not stops(trivial_checks(["auc"], {}, at, beat="one")[0])
    unsure = replace(at, spreads={"auc": Spread(0.1, 63)})
    assert stops(trivial_checks(["auc"], {}, unsure, beat="one")[0])


def test_area_of_labels_that_are_shares_must_surely_be_above_one_half():
    shares = LabelStatistics.of_counts({0: 50, 0.25: 50, 1: 50})
    [chance] = check({"auc": 0.5}, labels=shares)
    assert chance.reason == "auc 0.5, needs above 0.5 (answers drawn at random)"


@pytest.mark.parametrize(("error", "passes"), [(0.03, True), (0.05, False)])
def test_error_must_lie_below_that_of_the_mean_beyond_chance(error, passes):
    at = Measured({"mean_squared_error": 0.1}, {}, TAXI, spreads={"mean_squared_error": Spread(error, 63)})
    [found], _ = trivial_checks(["mean_squared_error"], {}, at, beat="one")
    assert found.passed is passes
    assert passes or found.note.startswith("its upper bound is 0.1835 with ")


def test_value_without_bounds_is_judged_by_itself_and_that_is_reported():
    at = Measured({"mean_squared_error": 0.1, "auc": 0.9, "binary_accuracy": 0.9, "hinge": 1}, {}, TAXI)
    checks, notes = trivial_checks(["mean_squared_error", "auc", "hinge"], {}, at, beat="one")
    assert [check.metric for check in checks if check.passed] == ["mean_squared_error", "auc"]
    assert notes == [
        "mean_squared_error is judged without the confidence asked for on overall: the evaluation has no "
        "bounds for it there"
    ]


@pytest.mark.parametrize(("error", "passes"), [(0.1, True), (0.17, True), (0.175, False), (0.5, False)])
def test_error_must_lie_below_that_of_the_mean(error, passes):
    [found] = check({"mean_squared_error": error})
    assert found.passed is passes


@pytest.mark.parametrize(
    ("metric", "limits", "found"),
    [
        ("binary_accuracy", Threshold(min=0.6), ("min", 0.6, "above 0.775", "always answering stays")),
        ("binary_accuracy", Threshold(min=0.775), ("min", 0.775, "above 0.775", "always answering stays")),
        ("binary_accuracy", Threshold(min=0.78), None),
        ("binary_accuracy", Threshold(max_drop=0.1), None),
        ("auc", Threshold(min=0.5), ("min", 0.5, "above 0.5", "answers drawn at random")),
        ("auc", Threshold(min=0.7), None),
        (
            "mean_absolute_error",
            Threshold(max=0.3),
            ("max", 0.3, "below 0.225", "always answering the median"),
        ),
        (
            "mean_absolute_error",
            Threshold(max=0.225),
            ("max", 0.225, "below 0.225", "always answering the median"),
        ),
        ("mean_absolute_error", Threshold(max=0.2), None),
        ("mean_absolute_error", Threshold(max_rise=0.2), None),
        ("hinge", Threshold(max=9.0), None),
    ],
)
def test_threshold_that_a_constant_answer_meets_is_a_finding(metric, limits, found):
    value = 0.9 if METRICS[metric].better == "higher" else 0.01
    checks = check({metric: value}, classes=("stays", "goes"), **{metric: limits})
    findings = [each for each in checks if each.metric.startswith("threshold ")]
    if found is None:
        assert findings == []
        return
    key, limit, required, answer = found
    note = f"it tests nothing: {answer} meets it"
    assert findings == [
        Check(f"threshold {metric}.{key}", "overall", required, limit, None, False, stops=False, note=note)
    ]


def test_one_label_only_is_refused_for_nothing_can_be_learned_from_it():
    [refused] = check({"auc": 0.9}, labels=LabelStatistics.of_counts({0: 500}))
    note = "the eval split says nothing about a model; check data.split and transform.label"
    assert refused == Check(
        "label", "overall", "more than one value", None, None, False, found="is always 0", note=note
    )


def test_metrics_without_a_known_constant_are_reported():
    at = Measured({"hinge": 0.1}, {}, TAXI)
    checks, notes = trivial_checks(["hinge"], {}, at, beat="one")
    assert (checks, notes) == ([], ["none of evaluate.metrics has a known trivial value to compare with"])
    checks, notes = trivial_checks(["auc"], {}, Measured({"auc": 0.1}, {}, None), beat="one")
    note = "the labels' statistics are not known, so nothing was compared with a trivial model"
    assert (checks, notes) == ([], [note])


def test_ten_classes_are_compared_with_the_most_frequent():
    ten = LabelStatistics.of_counts(dict.fromkeys(range(10), 36))
    [guess] = check({"sparse_categorical_accuracy": 0.11}, labels=ten)
    [learned] = check({"sparse_categorical_accuracy": 0.96}, labels=ten)
    assert (guess.passed, learned.passed) == (False, True)


@pytest.mark.parametrize(
    ("metrics", "look"),
    [
        ({"binary_accuracy": 0.999, "auc": 0.9}, "look at auc, precision and recall, which the report draws"),
        ({"binary_accuracy": 0.999}, "look at precision and recall, which the report draws"),
    ],
)
def test_accuracy_of_a_rare_class_is_told_to_say_little(metrics, look):
    rare = LabelStatistics.of_counts({0: 9990, 1: 10})
    [told] = [each for each in check(metrics, labels=rare, classes=("no", "yes")) if each.metric == "label"]
    assert told.is_warning
    assert (told.passed, told.stops) == (False, False)
    assert told.reason == (
        "label is no in 9,990 of 10,000 rows, needs at most 95% of one class, or binary_accuracy says "
        f"little ({look})"
    )


@pytest.mark.parametrize(
    ("metrics", "rows"),
    [({"binary_accuracy": 0.96}, {0: 95, 1: 5}), ({"auc": 0.9, "binary_crossentropy": 0.1}, {0: 99, 1: 1})],
)
def test_no_word_of_accuracy_where_it_says_something_or_is_not_asked_for(metrics, rows):
    checks = check(metrics, labels=LabelStatistics.of_counts(rows))
    assert [each for each in checks if each.metric == "label"] == []


def test_every_output_must_be_worth_its_answers():
    labels = {"tip": TAXI, "cost": LabelStatistics.of_counts({1.0: 500, 3.0: 500})}
    metrics = {"tip/binary_accuracy": 0.9, "cost/mean_squared_error": 1.2, "example_count": 1000.0}
    overall = Measured(metrics, {}, None, labels_of_outputs=labels)
    names = ["tip/binary_accuracy", "cost/mean_squared_error"]
    checks, _ = checks_of_outputs(names, {}, overall, beat="one")
    assert [(check.metric, check.passed, check.stops) for check in checks] == [
        ("tip/binary_accuracy", True, False), ("cost/mean_squared_error", False, True)
    ]  # fmt: skip
    told = trivial_document(names, {"overall": overall, "day=1": overall})
    assert told["overall"]["cost/mean_squared_error"] == {"always answering 2, the mean": 1.0}
    assert told["slices"]["tip/binary_accuracy"] == {"day=1": 0.775}


def test_a_model_of_one_output_is_checked_as_it_is():
    overall = Measured({"binary_accuracy": 0.9, "auc": 0.8}, {}, TAXI)
    given = ["binary_accuracy", "auc"], {"auc": Threshold(min=0.4)}, overall
    for beat in ("one", "all", "none"):
        for classes in ((), ("no", "yes")):
            of_outputs = checks_of_outputs(*given, beat=beat, classes={"": classes})
            assert of_outputs == trivial_checks(*given, beat=beat, classes=classes)


def test_each_output_is_checked_by_its_own_metrics_and_thresholds():
    labels = {"tip": TAXI, "paid": LabelStatistics.of_counts({0: 400, 1: 600})}
    overall = Measured({"tip/auc": 0.9, "example_count": 1000.0}, {}, None, labels_of_outputs=labels)
    names, thresholds = (
        ["tip/auc"],
        {"tip/auc": Threshold(min=0.6), "paid/binary_accuracy": Threshold(min=0.5)},
    )
    named = {"paid": ("no", "yes"), "tip": ("small", "big")}
    checks, notes = checks_of_outputs(names, thresholds, overall, beat="none", classes=named)
    assert [(check.metric, check.stops) for check in checks] == [
        ("tip/auc", False),
        ("threshold paid/binary_accuracy.min", False),
    ]
    assert "always answering yes" in checks[1].reason
    assert notes == ["paid: none of evaluate.metrics has a known trivial value to compare with"]
    told = trivial_document(["paid/binary_accuracy"], {"overall": overall}, named)["overall"]
    assert told == {"paid/binary_accuracy": {"always answering yes": 0.6}}
    numbered, _ = checks_of_outputs(
        names, thresholds, overall, beat="none", classes={"tip": ("small", "big")}
    )
    assert "always answering 1 " in numbered[1].reason
    unknown = replace(overall, labels_of_outputs={"tip": TAXI, "paid": TAXI, "cost": TAXI})
    _, notes = checks_of_outputs(names, {}, unknown, beat="one")
    assert [note.partition(": ")[0] for note in notes] == ["paid", "cost"]


def test_document_is_empty_only_where_no_labels_are_known():
    nothing = {"overall": {}, "slices": {}}
    assert trivial_document(["recall"], {"overall": Measured({}, {}, TAXI)}) == nothing
    of_outputs = Measured({}, {}, None, labels_of_outputs={"tip": TAXI})
    assert trivial_document(["tip/recall"], {"overall": of_outputs}) == nothing
    assert trivial_document(["auc"], {"overall": Measured({"auc": 0.9}, {}, None)}) == {}
    assert trivial_document(["auc"], {"day=1": Measured({}, {}, TAXI)}) == {}


def test_an_output_whose_labels_are_all_equal_is_named():
    labels = {"tip": TAXI, "cost": LabelStatistics.of_counts({2.0: 1000})}
    overall = Measured({"tip/auc": 0.9, "example_count": 1000.0}, {}, None, labels_of_outputs=labels)
    checks, notes = checks_of_outputs(["tip/auc"], {}, overall, beat="one")
    assert [check.metric for check in checks] == ["tip/auc", "cost label"]
    assert notes == []


@pytest.mark.parametrize("weights", [{"of_negatives": 100}, {"of_positives": 100}, {"of_positives": 0.01}])
def test_bounds_of_an_area_depend_on_the_rows_of_each_class_not_on_what_the_other_weighs(weights):
    alike, unlike = weighed(1000, 1000), weighed(1000, 1000, **weights)
    assert unlike.rows < 1100
    assert unlike.rows_by_class == alike.rows_by_class == (1000, 1000)
    metrics, limits = {"auc": 0.8}, {"auc": Threshold(min=0.8, confidence=0.95)}
    notes = []
    for labels in (alike, unlike):
        at = Measured({"example_count": 2000.0, **metrics}, {}, labels)
        [found], _ = threshold_checks({"overall": limits}, {"overall": at}, min_slice_rows=1)
        notes.append(found.note)
    assert notes == ["lower bound 0.7837"] * 2
    assert check(metrics, labels=alike) == check(metrics, labels=unlike)


def test_rows_and_what_they_are_worth_are_both_told_where_they_differ():
    labels = weighed(10, 90, of_negatives=20)
    at = Measured({"example_count": 100.0, "binary_accuracy": 0.9947}, {}, labels)
    checks, _ = trivial_checks(["binary_accuracy"], {}, at, beat="one")
    assert [each.note for each in checks] == [
        "its lower bound is 0.9615 with 100 rows, worth 91 by their weights; "
        "more rows in the eval split help",
        "look at precision and recall, which the report draws",
    ]
    assert checks[1].found == "is 0 in 99.45%, by weight, of 100 rows, worth 91 by their weights"
    assert Measured({"example_count": 1000.0}, {}, TAXI).rows_in_words == "1,000 rows"
    of_outputs = Measured({"example_count": 100.0}, {}, None, labels_of_outputs={"tip": labels})
    assert of_outputs.rows_in_words == "100 rows, worth 91 by their weights"


@pytest.mark.parametrize(
    ("metric", "is_told"),
    [("accuracy", True), ("binary_accuracy", False), ("sparse_categorical_accuracy", False)],
)
def test_an_accuracy_that_probabilities_cannot_have_names_the_one_that_they_can(metric, is_told):
    at = Measured({"example_count": TAXI.rows, metric: 0.0}, {}, TAXI)
    [check], _ = trivial_checks([metric], {}, at, beat="one")
    assert not check.passed
    assert ("of probabilities name binary_accuracy" in check.note) == is_told
