"""The table by itself; tests/integration/test_model_gate.py compares it with Keras and the Evaluator."""

import numpy as np
import pytest

from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.metric_values import results
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.spreads import spreads
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import (
    BY_CLASS,
    CONFUSION,
    METRICS,
    Confusion,
    Metric,
    metric_of,
    of_output,
    output_of,
    plain_name,
)
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.threshold_rules import Threshold, threshold_checks
from slipway.components.model_gate.trivial_scores import LabelStatistics


def test_a_name_may_have_an_output_s_before_it():
    assert of_output("sold", "auc") == "sold/auc"
    assert of_output("", "auc") == "auc"
    assert (output_of("sold/auc"), plain_name("sold/auc")) == ("sold", "auc")
    assert (output_of("auc"), plain_name("auc")) == ("", "auc")
    assert metric_of("sold/auc") is METRICS["auc"]


@pytest.mark.parametrize(
    ("name", "value", "than", "better"),
    [
        ("auc", 0.9, 0.8, True),
        ("auc", 0.8, 0.9, False),
        ("auc", 0.9, 0.9, False),
        ("auc", float("nan"), 0.9, False),
        ("sold/binary_crossentropy", 0.2, 0.3, True),
        ("binary_crossentropy", 0.3, 0.2, False),
        ("binary_crossentropy", 0.3, 0.3, False),
        ("binary_crossentropy", 0.3, float("nan"), False),
        ("interval_coverage", 0.9, 0.8, False),
        ("interval_coverage", 0.8, 0.9, False),
    ],
)
def test_a_value_is_better_on_the_metric_s_own_side(name, value, than, better):
    assert metric_of(name).is_better(value, than=than) is better


@pytest.mark.parametrize(
    ("name", "fitting"),
    [
        ("mean_squared_error", {(1, 1), (3, 3)}),
        ("binary_accuracy", {(1, 1), (1, 3)}),
        ("categorical_accuracy", {(3, 1), (3, 3)}),
        ("ndcg", {(1, 1), (1, 3)}),
        ("auc", {(1, 1), (1, 3), (3, 1), (3, 3)}),
    ],
)
def test_a_metric_fits_so_many_answers_to_a_label_of_so_many_numbers(name, fitting):
    asked = [(width, entries) for width in (1, 3) for entries in (1, 3)]
    assert {each for each in asked if METRICS[name].fits(each[0], entries=each[1])} == fitting


def test_no_two_metrics_are_of_one_class():
    assert len(BY_CLASS) == len(METRICS)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.confusion])
def test_a_share_lies_within_its_whole_and_depends_on_rows(name):
    metric = METRICS[name]
    assert any(metric.confusion.deciding)
    if metric.confusion.whole is None:
        assert metric.at_most is None
    else:
        parts = zip(metric.confusion.part, metric.confusion.whole, strict=True)
        assert all(part <= whole for part, whole in parts)
        assert metric.at_most == 1


@pytest.mark.parametrize("name", ["auc", "f1_score", "precision", "recall"])
def test_an_area_and_a_share_of_some_rows_need_both_classes(name):
    assert METRICS[name].needs_both_classes


@pytest.mark.parametrize(
    "name", ["accuracy", "binary_accuracy", "mean_squared_error", "ndcg", "true_positives"]
)
def test_a_mean_over_all_rows_and_a_count_need_no_two_classes(name):
    assert not METRICS[name].needs_both_classes


def test_labels_are_classes_where_yes_and_no_or_the_commonest_class_are_counted():
    assert {name for name, metric in METRICS.items() if metric.is_of_classes} == {
        "accuracy", "auc", "binary_accuracy", "binary_crossentropy", "categorical_accuracy",
        "categorical_hinge", "f1_score", "false_negatives", "false_positives", "precision", "recall",
        "sparse_categorical_accuracy", "sparse_categorical_crossentropy", "sparse_top_k_categorical_accuracy",
        "top_k_categorical_accuracy", "true_negatives", "true_positives",
    }  # fmt: skip


def test_what_is_computed_from_yes_and_no_is_asked_of_each_class_unless_it_takes_one_output():
    assert all(METRICS[name].is_of_each_class for name in ("auc", "f1_score", "recall", "false_negatives"))
    assert not any(METRICS[name].is_of_each_class for name in ("binary_accuracy", "categorical_accuracy"))


@pytest.fixture
def specificity(monkeypatch):
    """A metric that stands in the table, and nowhere else."""
    negatives = (0, 1, 1, 0)
    counted = Confusion(part=(0, 1, 0, 0), deciding=negatives, whole=negatives)
    metric = Metric("Specificity", "higher", at_most=1, confusion=counted)
    monkeypatch.setitem(METRICS, "specificity", metric)
    monkeypatch.setitem(BY_CLASS, "Specificity", metric)
    monkeypatch.setitem(CONFUSION, "Specificity", counted)
    return metric


def evaluated(labels, answers):
    asked = Request(
        models=(ModelRequest("", "label", is_baseline=False),),
        slices=((),),
        metrics={"specificity": "Specificity"},
    )
    tally = Tally(asked)
    tally.add({}, [Judged(labels[:, None], answers[:, None])], first=0)
    return results(asked, tally)[()]["", "specificity"], spreads(asked, tally)[()]["", "specificity", False]


def test_a_new_share_needs_no_entry_but_that_in_the_table(specificity):
    labels = np.repeat([0.0, 1.0], [400, 10])
    answers = np.where(np.arange(410) < 20, 0.9, 0.1)
    value, spread = evaluated(labels, answers)
    assert value == 0.95
    # Decided by the negatives, of which there are many; of the ten positives the freedom would be 9.
    assert spread.degrees_of_freedom == 63
    assert spread.error == pytest.approx(np.sqrt(0.95 * 0.05 / 400), rel=0.3)
    assert evaluated(labels, np.full(410, 0.1))[1].error == 2 / 400
    assert specificity.needs_both_classes
    assert specificity.is_of_each_class


def test_a_new_share_passes_with_confidence_and_is_not_judged_on_rows_of_one_class(specificity):
    value, spread = evaluated(np.repeat([0.0, 1.0], [400, 10]), np.where(np.arange(410) < 20, 0.9, 0.1))
    at = Measured(
        {"specificity": value}, {}, LabelStatistics.of_counts({0: 400, 1: 10}), {"specificity": spread}
    )
    of_one = Measured({"specificity": 1.0, "example_count": 500}, {}, LabelStatistics.of_counts({1: 500}))
    limits = {"specificity": Threshold(min=0.9, confidence=0.95)}
    checks, notes = threshold_checks(
        {"overall": limits, "all": limits}, {"overall": at, "a=1": of_one}, min_slice_rows=1
    )
    assert [(check.slice, check.passed) for check in checks] == [("overall", True)]
    assert notes == ["specificity is not judged on a=1: all its labels are equal"]
