"""A model that answers NaN or infinity to some rows, or of which nothing was measured, is refused."""

import math
from dataclasses import replace

import pytest

from slipway.components.model_gate.answer_rules import (
    answer_checks,
    finite_checks,
    fit_checks,
    measured_checks,
    probability_checks,
    quantile_checks,
)
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.trivial_scores import LabelStatistics
from slipway.components.model_gate.verdict import Check, conclude


def refused(metric, required, found, note, *, where="overall"):
    """A check without a number that refuses the model."""
    return Check(metric, where, required, None, None, passed=False, found=found, note=note)


def test_answers_that_are_no_number_refuse_the_model():
    verdict = conclude(answer_checks({"": 3}, 4966.0), metrics={}, baseline_metrics={})
    assert not verdict.blessed
    assert verdict.reasons == (
        "model answers NaN or infinity to 3 of 4,966 rows, needs a number for every row "
        "(check what the model divides by or takes the logarithm of)",
    )


def test_each_output_is_named():
    note = "check what the model divides by or takes the logarithm of"
    assert answer_checks({"tip": 2, "fare": 0, "cost": 1}, 20.0) == [
        refused("output cost", "a number for every row", "answers NaN or infinity to 1 of 20 rows", note),
        refused("output tip", "a number for every row", "answers NaN or infinity to 2 of 20 rows", note),
    ]


def test_finite_answers_need_no_check():
    assert answer_checks({"": 0}, 4966.0) == []


@pytest.mark.parametrize("counted", [{}, {"overall": Measured({"example_count": 300.0}, {"auc": 0.9}, None)}])
def test_model_of_which_nothing_was_measured_is_refused(counted):
    """As of a split without rows, and of rows that all weigh nothing."""
    verdict = conclude(measured_checks(["auc", "recall"], counted), metrics={}, baseline_metrics={})
    assert not verdict.blessed
    assert verdict.reasons == (
        "evaluation has no value of auc or recall, needs at least one "
        "(look at data.split, transform.label, transform.weight and the Evaluator's log)",
    )


def test_one_value_in_one_slice_is_a_measurement():
    slices = {"overall": Measured({}, {}, None), "pay=Cash": Measured({"recall": 0.0}, {}, None)}
    assert measured_checks(["auc", "recall"], slices) == []
    assert measured_checks([], slices) == []
    assert measured_checks(["auc"], slices)


def test_each_output_is_measured():
    slices = {"overall": Measured({"cost/mean_absolute_error": 0.2}, {}, None)}
    names = ["cost/mean_absolute_error", "tip/mean_squared_error", "tip/mean_absolute_error"]
    assert measured_checks(names, slices) == [
        refused(
            "evaluation",
            "at least one",
            "has no value of tip/mean_squared_error or tip/mean_absolute_error",
            "look at data.split, transform.label, transform.weight and the Evaluator's log",
        )
    ]
    [check] = measured_checks([], {})
    assert check.found == "has no value"


def test_metric_without_a_value_over_known_labels_is_left_to_the_other_rules():
    """As the precision of a model that never says yes."""
    labels = LabelStatistics.of_counts({0.0: 5, 1.0: 2})
    at = Measured({"recall": 0.0}, {}, labels)
    assert measured_checks(["precision", "recall"], {"overall": at}) == []
    outputs = Measured({"cost/recall": 0.0}, {}, None, labels_of_outputs={"tip": labels, "cost": labels})
    assert measured_checks(["cost/recall", "tip/precision"], {"overall": outputs}) == []


def test_mean_over_outputs_has_the_labels_of_any_of_them():
    labels = LabelStatistics.of_counts({0.0: 5, 1.0: 2})
    at = Measured({"cost/recall": 0.0}, {}, None, labels_of_outputs={"cost": labels})
    assert measured_checks(["cost/recall", "loss"], {"overall": at}) == []
    [check] = measured_checks(["cost/recall", "tip/recall"], {"overall": at})
    assert check.found == "has no value of tip/recall"


def test_labels_of_a_slice_alone_are_not_those_of_the_split():
    slices = {"pay=Cash": Measured({"recall": 0.0}, {}, None)}
    [check] = measured_checks(["recall", "tip/recall"], slices)
    assert check.found == "has no value of tip/recall"


def test_no_value_at_all_is_no_measurement_though_the_labels_are_known():
    """As of a precision of several classes, or with beat_trivial: none, which no other rule refuses."""
    labels = LabelStatistics.of_counts({0.0: 5, 1.0: 2, 2.0: 3})
    at = Measured({"example_count": 10.0}, {}, labels)
    [check] = measured_checks(["precision"], {"overall": at})
    assert (check.passed, check.stops, check.found) == (False, True, "has no value of precision")


def test_infinite_metric_refuses_the_model_though_it_has_no_threshold():
    """One label that is the logarithm of 0 makes every error infinite, and the labels have no variance."""
    overall = Measured({"mean_absolute_error": math.inf, "mean_squared_error": 2.0}, {}, None)
    assert finite_checks(["mean_absolute_error", "mean_squared_error", "accuracy"], overall) == [
        refused(
            "mean_absolute_error",
            "a finite value",
            "is inf",
            "a label or an answer is infinite, or has no logarithm: check what preprocessing_fn makes "
            "of the label, and what the model answers",
        )
    ]


def test_logits_refuse_the_model_where_a_metric_takes_probabilities():
    [check] = probability_checks(["auc", "mean_squared_error", "binary_accuracy"], {"": 4000}, 5000.0)
    assert check.stops
    assert check.reason == (
        "model answers below 0 or above 1 to 4,000 of 5,000 rows, needs probabilities, 0 to 1, for auc, "
        "binary_accuracy (let its last layer end in a sigmoid or a softmax, with a loss without "
        "from_logits=True; or name metrics of numbers)"
    )
    outside = {"tip": 1, "fare": 9, "cost": 0, "age": 2}
    metrics = ["tip/auc", "fare/mean_squared_error", "cost/auc", "age/recall", "age/auc"]
    note = (
        "let its last layer end in a sigmoid or a softmax, with a loss without from_logits=True; or name "
        "metrics of numbers"
    )
    found = "answers below 0 or above 1 to {} of 9 rows".format
    assert probability_checks(metrics, outside, 9.0) == [
        refused("output age", "probabilities, 0 to 1, for recall, auc", found(2), note),
        refused("output tip", "probabilities, 0 to 1, for auc", found(1), note),
    ]
    assert probability_checks(["sparse_categorical_accuracy"], {"": 4000}, 5000.0) == []
    assert probability_checks(["auc"], {"": 0}, 5000.0) == []


@pytest.mark.parametrize(
    ("metrics", "kinds", "said"),
    [
        (
            ["categorical_accuracy", "auc"],
            {"": "binary"},
            ["is of one output, needs one output for each class"],
        ),
        (["mean_absolute_error", "auc"], {"": "classes"}, ["is of several outputs, needs one output"]),
        (["mean_absolute_error", "auc"], {"": "numbers"}, []),
        (
            ["fare/mean_absolute_error", "kind/mean_absolute_error", "auc"],
            {"kind": "classes"},
            ["is of several"],
        ),
        (["categorical_accuracy"], {}, []),
    ],
)
def test_metric_of_another_number_of_outputs_is_refused_without_a_serving_check(metrics, kinds, said):
    """`categorical_accuracy` of one number is 1 for every model, above any constant answer."""
    found = fit_checks(metrics, kinds, Measured({}, {}, None))
    assert len(found) == len(said)
    for check, words in zip(found, said, strict=True):
        assert not check.passed
        assert words in check.reason


def test_metric_that_does_not_fit_is_refused_as_one_of_no_slice():
    [check] = fit_checks(["fare/categorical_accuracy"], {"fare": "binary"}, Measured({}, {}, None))
    assert check == refused(
        "metric fare/categorical_accuracy",
        "one output for each class",
        "is of one output",
        "this metric says nothing about such a model; choose another",
        where="",
    )


def test_errors_of_a_vector_fit_one_output_for_each_of_its_numbers():
    one = LabelStatistics.of_counts({0: 5, 1: 5})
    of_two = Measured({}, {}, replace(one, entries=2.0))
    assert fit_checks(["mean_squared_error"], {"": "classes"}, of_two) == []
    [check] = fit_checks(["mean_squared_error"], {"": "numbers"}, of_two)
    assert check.reason.startswith(
        "metric mean_squared_error is of one output, needs one output for each number"
    )
    several = Measured({}, {}, None, labels_of_outputs={"a": replace(one, entries=2.0), "b": one})
    assert [several.entries_of(f"{name}mean_squared_error") for name in ("a/", "b/", "")] == [2, 1, 1]


@pytest.mark.parametrize("name", ["quantile_crossing", "cost/quantile_crossing"])
def test_quantiles_that_cross_are_reported_and_stop_nothing(name):
    assert quantile_checks(["pinball_loss", name], Measured({name: 0.02, "pinball_loss": 3.0}, {}, None)) == [
        Check(
            metric=name,
            slice="overall",
            required="0: no lower quantile above a higher one",
            got=0.02,
            baseline=None,
            passed=False,
            stops=False,
            note="slipway.components.trainer.models.quantiles.rising makes answers that cannot cross",
        )
    ]
    assert quantile_checks([name], Measured({name: 0.0}, {}, None)) == []
    assert quantile_checks([name], Measured({}, {}, None)) == []
