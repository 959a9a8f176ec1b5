"""What the checks of a model come to."""

import json
import math

from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.threshold_rules import Threshold, threshold_checks
from slipway.components.model_gate.trivial_scores import LabelStatistics
from slipway.components.model_gate.verdict import Check, conclude


def test_value_that_only_its_bound_fails_is_shown_as_it_is():
    check = Check("auc", "overall", "at least 0.94 with 95 % confidence", 0.94, None, passed=False)
    assert check.reason == "auc 0.94, needs at least 0.94 with 95 % confidence"


def test_hand_that_was_not_needed_overrides_nothing():
    found = conclude([], metrics={}, baseline_metrics={}, bless="to be safe")
    assert found.overrides == ()
    assert "not needed" in found.notes[0]


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
