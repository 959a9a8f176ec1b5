"""What the checks of a model come to."""

import json
import math
from dataclasses import replace

import pytest

from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.threshold_rules import Threshold, threshold_checks
from slipway.components.model_gate.trivial_scores import LabelStatistics
from slipway.components.model_gate.verdict import Check, ModelVerdict, conclude


def test_value_that_only_its_bound_fails_is_shown_as_it_is():
    check = Check("auc", "overall", "at least 0.94 with 95 % confidence", 0.94, None, passed=False)
    assert check.reason == "auc 0.94, needs at least 0.94 with 95 % confidence"


@pytest.mark.parametrize(
    ("got", "shown"),
    [
        (0.93412345, "0.9341"),
        (0.9399991, "0.939999"),
        (0.9399999912, "0.939999991"),
        (0.939999999999, "0.939999999999"),
    ],
)
def test_value_below_its_limit_is_shown_with_as_many_digits_as_tell_them_apart(got, shown):
    check = Check("auc", "overall", "at least 0.94", got, None, passed=False)
    assert check.reason == f"auc {shown}, needs at least 0.94"


def test_value_that_meets_its_limit_has_four_digits():
    check = Check("auc", "overall", "at least 0.94", 0.940004, None, passed=True)
    assert check.reason == "auc 0.94, meets at least 0.94"


def test_reason_names_the_slice_and_the_unit_and_what_would_help_a_failure():
    check = Check("p99", "pay=Cash", "at most 5 ms", 7.5, None, passed=False, unit="ms", note="use batches")
    assert check.reason == "p99 7.5 ms on pay=Cash, needs at most 5 ms (use batches)"
    assert replace(check, passed=True, slice="").reason == "p99 7.5 ms, meets at most 5 ms"


def test_reason_without_a_number_tells_what_was_found():
    check = Check("auc", "overall", "at least 0.94", None, None, passed=False)
    assert check.reason == "auc was not computed, needs at least 0.94"
    assert replace(check, found="is inf").reason == "auc is inf, needs at least 0.94"


@pytest.mark.parametrize(("passed", "stops"), [(True, True), (True, False), (False, True)])
def test_warning_is_a_failed_check_that_does_not_stop(passed, stops):
    check = Check("auc", "overall", "at least 0.94", 0.9, None, passed=passed, stops=stops)
    assert check.is_warning is False
    assert replace(check, passed=False, stops=False).is_warning is True


AUC = Check("auc", "overall", "at least 0.8", 0.9, 0.85, passed=True)
RECALL = Check("recall", "overall", "at least 0.5", 0.7, None, passed=True)


def test_reasons_for_a_blessing_have_one_line_for_each_metric_and_count_the_rest():
    constant = replace(AUC, required="more than a constant's 0.5")
    checks = [
        AUC,
        RECALL,
        constant,
        replace(RECALL, slice="pay=Cash"),
        replace(RECALL, metric="cost", got=None),
    ]
    auc, recall = "auc 0.9, meets at least 0.8", "recall 0.7, meets at least 0.5"
    earlier = {"auc": 0.85}

    def reasons(of, baseline):
        return conclude(of, metrics={}, baseline_metrics=baseline).reasons

    assert reasons(checks, earlier) == (auc, recall, "3 more checks hold")
    assert reasons(checks[:3], earlier) == (auc, recall, "1 more check holds")
    assert reasons(checks[:2], {}) == (auc, recall, "no earlier blessed model to compare with")
    assert reasons([replace(AUC, passed=False, stops=False), RECALL], earlier) == (recall,)


def test_verdict_of_a_blessed_model_holds_all_that_was_compared():
    warning = Check("cost", "overall", "at most 2", 3.0, None, passed=False, stops=False)
    found = conclude(
        [AUC, warning], metrics={"auc": 0.9}, baseline_metrics={"auc": 0.85}, notes=["no labels in pay=Cash"]
    )
    assert found == ModelVerdict(
        blessed=True,
        reasons=("auc 0.9, meets at least 0.8",),
        warnings=("cost 3, needs at most 2",),
        checks=(AUC, warning),
        metrics={"auc": 0.9},
        baseline_metrics={"auc": 0.85},
        notes=("no labels in pay=Cash",),
        overrides=(),
    )


def test_verdict_of_a_refused_model_has_the_failed_checks_alone_as_its_reasons():
    failed = replace(AUC, got=0.7, passed=False)
    found = conclude([failed, RECALL], metrics={}, baseline_metrics={})
    assert found == ModelVerdict(
        blessed=False,
        reasons=("auc 0.7, needs at least 0.8",),
        warnings=(),
        checks=(failed, RECALL),
        metrics={},
        baseline_metrics={},
    )


def test_hand_overrides_every_failed_check_by_name():
    failed = [replace(AUC, got=0.7, passed=False), replace(RECALL, got=0.4, passed=False)]
    found = conclude(failed, metrics={}, baseline_metrics={}, notes=["a note"], bless="why")
    clauses = ["auc 0.7, needs at least 0.8", "recall 0.4, needs at least 0.5"]
    assert found.reasons == (f'by hand, "why", despite: {"; ".join(clauses)}',)
    assert found.overrides == ({"reason": "why", "overridden": clauses},)
    assert found.notes == ("a note",)


def test_hand_that_was_not_needed_overrides_nothing():
    found = conclude([AUC], metrics={}, baseline_metrics={"auc": 1.0}, notes=["a note"], bless="to be safe")
    assert found.blessed
    assert found.reasons == ("auc 0.9, meets at least 0.8",)
    assert found.overrides == ()
    assert found.notes == ("a note", "--bless was not needed: nothing would have refused the model")


def test_number_that_is_not_finite_leaves_the_check_and_the_finite_one_stays():
    candidate = Check("cost", "overall", "at most 3", math.nan, 2.0, passed=False)
    baseline = Check("cost", "overall", "at most 3", 2.0, math.inf, passed=True, found="so")
    found = conclude([candidate, baseline], metrics={}, baseline_metrics={})
    assert found.checks == (replace(candidate, got=None, found="nan"), replace(baseline, baseline=None))


LABELS = LabelStatistics.of_counts({0: 800, 1: 200})


def measured(got, baseline=None, labels=LABELS):
    return Measured({"example_count": labels.rows, **got}, baseline or {}, labels)


def test_hand_blesses_on_the_record_what_the_gate_refuses():
    slices = {"overall": measured({"auc": 0.5})}
    checks, _ = threshold_checks({"overall": {"auc": Threshold(min=0.9)}}, slices, min_slice_rows=1)
    found = conclude(checks, metrics={}, baseline_metrics={}, bless="the old one is broken")
    assert found.blessed
    assert found.overrides == (
        {"reason": "the old one is broken", "overridden": ["auc 0.5, needs at least 0.9"]},
    )
    assert found.reasons == ('by hand, "the old one is broken", despite: auc 0.5, needs at least 0.9',)


def test_a_number_that_json_does_not_have_is_told_in_words():
    at = Measured({"mean_absolute_error": math.inf}, {"mean_absolute_error": math.inf}, None)
    checks, _ = threshold_checks(
        {"overall": {"mean_absolute_error": Threshold(max=3)}}, {"overall": at}, min_slice_rows=1
    )
    found = conclude(checks, metrics=at.metrics, baseline_metrics=at.baseline)
    assert found.reasons == ("mean_absolute_error inf, needs at most 3",)
    assert (found.metrics, found.baseline_metrics) == ({}, {})
    json.dumps(found.to_json(), allow_nan=False)
