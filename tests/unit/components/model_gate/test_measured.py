"""What was measured of a slice, and which of its metrics mean something there."""

import math
from dataclasses import replace

import pytest

from slipway.components.model_gate.measured import Measured, is_empty, is_mean, is_undefined, told
from slipway.components.model_gate.trivial_scores import LabelStatistics

BOTH = LabelStatistics.of_counts({0: 60, 1: 40})
ONES = LabelStatistics.of_counts({1: 100})
ZEROS = LabelStatistics.of_counts({0: 100})


def of_outputs(metrics=(), **labels):
    return Measured(dict(metrics), {}, None, labels_of_outputs=labels)


@pytest.mark.parametrize(
    ("metric", "labels", "undefined"),
    [
        ("auc", BOTH, False),
        ("auc", ONES, True),
        ("auc", ZEROS, True),
        ("auc", None, False),  # of what is not known nothing is left out
        ("binary_accuracy", ONES, False),
        ("mean_squared_error", ZEROS, False),
        ("ndcg", ZEROS, True),  # no row is relevant
        ("ndcg", ONES, False),
        ("mean_absolute_percentage_error", ZEROS, True),  # of shares of 0 there are none
        ("mean_absolute_percentage_error", ONES, False),
        ("of_ones_own", ONES, False),
    ],
)
def test_metric_means_nothing_for_labels_that_it_cannot_tell_apart(metric, labels, undefined):
    assert is_undefined(metric, Measured({metric: 0.5}, {}, labels)) is undefined
    assert Measured({metric: 0.5}, {}, labels).defined == ({} if undefined else {metric: 0.5})


def test_mean_over_outputs_means_something_while_one_of_them_does():
    assert not is_undefined("auc", of_outputs(a=BOTH, b=ONES))
    assert is_undefined("auc", of_outputs(a=ZEROS, b=ONES))
    found = of_outputs({"auc": 0.5, "a/auc": 0.6, "b/auc": 0.4}, a=BOTH, b=ONES)
    assert found.defined == {"auc": 0.5, "a/auc": 0.6}


def test_only_a_metric_without_an_output_is_a_mean_and_only_where_there_are_several():
    assert is_mean("auc", of_outputs(a=BOTH))
    assert not is_mean("a/auc", of_outputs(a=BOTH))
    assert not is_mean("auc", Measured({}, {}, BOTH))
    assert not is_mean("auc", Measured({}, {}, None))


def test_slice_without_a_row_that_counts_tells_nothing_where_others_have_some():
    overall = Measured({"auc": 0.7}, {}, BOTH)
    none = Measured({"auc": 0.0, "mine": 3.0}, {}, None)
    assert is_empty("auc", none, overall=overall)
    assert not is_empty("auc", overall, overall=overall)
    assert not is_empty("auc", none, overall=none), "nothing is known of any labels"
    assert not is_empty("mine", none, overall=overall), "one of the user's own may count rows"
    assert is_empty("other", none, overall=overall)
    assert told(none, overall=overall) == {"mine": 3.0}


def test_output_without_a_row_that_counts_is_empty_by_itself():
    overall, at = of_outputs(a=BOTH, b=BOTH), of_outputs(a=BOTH)
    assert not is_empty("a/auc", at, overall=overall)
    assert is_empty("b/auc", at, overall=overall)
    assert not is_empty("auc", at, overall=overall)
    assert is_empty("auc", of_outputs(), overall=overall)


def test_what_is_told_of_a_slice_is_finite():
    at = Measured({"auc": math.nan, "binary_accuracy": 0.5, "mean_squared_error": math.inf}, {}, BOTH)
    assert told(at, overall=at) == {"binary_accuracy": 0.5}


def test_an_auc_of_0_is_not_told_of_a_slice_of_one_class():
    at = Measured({"auc": 0.0, "binary_accuracy": 0.5}, {}, ONES)
    assert told(at, overall=Measured({"auc": 0.7}, {}, BOTH)) == {"binary_accuracy": 0.5}


def test_labels_of_an_output_are_taken_by_its_name():
    at = of_outputs(a=BOTH, b=ONES)
    assert at.of_output("b").labels == ONES
    assert at.of_output("none").labels is None
    assert at.of_output("") is at


def test_rows_are_those_of_the_evaluation_or_of_the_labels():
    assert Measured({"example_count": 120.0}, {}, BOTH).rows == 120
    assert Measured({}, {}, BOTH).rows == 100
    assert Measured({}, {}, None).rows == 0


def test_weights_that_differ_leave_fewer_rows():
    equal = Measured({"example_count": 100.0}, {}, BOTH)
    assert (equal.effective_rows, equal.has_weights, equal.rows_in_words) == (100, False, "100 rows")
    heavy = replace(BOTH, rows=25.0)
    for at in (Measured({"example_count": 100.0}, {}, heavy), of_outputs({"example_count": 100.0}, a=heavy)):
        assert at.effective_rows == 25
        assert at.has_weights
        assert at.rows_in_words == "100 rows, worth 25 by their weights"


def test_numbers_of_a_label_are_counted_where_it_is_a_vector():
    three, two = replace(BOTH, entries=3), replace(BOTH, entries=2)
    assert Measured({}, {}, three).entries_of("auc") == 3
    assert Measured({}, {}, BOTH).entries_of("auc") == 1
    assert of_outputs(a=three, b=two).entries_of("a/mean_squared_error") == 3
    assert of_outputs(a=three, b=three).entries_of("mean_squared_error") == 3
    assert of_outputs(a=three, b=two).entries_of("mean_squared_error") == 1
    assert Measured({}, {}, None).entries_of("auc") == 1
