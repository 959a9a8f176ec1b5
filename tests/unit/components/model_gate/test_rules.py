"""The model gate's rules."""

import json
import math

import pytest

from components.model_gate.rules import Limits, judge

AUC = {"auc": Limits(min=0.94, max_drop=0.01)}


def verdict(got, *, limits=AUC, baseline=None):
    return judge(thresholds=limits, metrics=got, baseline_metrics=baseline or {})


@pytest.mark.parametrize(
    ("limits", "value", "blessed"),
    [
        (Limits(min=0.94), 0.94, True),
        (Limits(min=0.94), 0.9399, False),
        (Limits(max=0.2), 0.2, True),
        (Limits(max=0.2), 0.2001, False),
        (Limits(min=0.1, max=0.2), 0.15, True),
        (Limits(min=0.1, max=0.2), 0.25, False),
        (Limits(), -5.0, True),
        (Limits(min=0.0), math.nan, False),
        (Limits(max=0.0), math.nan, False),
        (Limits(max=1.0), math.inf, False),
    ],
)
def test_value_is_held_against_its_bounds(limits, value, blessed):
    assert verdict({"auc": value}, limits={"auc": limits}).blessed is blessed


@pytest.mark.parametrize(("value", "blessed"), [(0.95, True), (0.941, True), (0.9405, True), (0.9395, False)])
def test_candidate_may_lie_max_drop_below_the_baseline(value, blessed):
    limits = {"auc": Limits(max_drop=0.01)}
    assert verdict({"auc": value}, limits=limits, baseline={"auc": 0.9505}).blessed is blessed


def test_missing_metric_is_never_blessed():
    found = verdict({"accuracy": 0.99}, limits={"auc": Limits(min=0.94)})
    assert not found.blessed
    assert found.reasons == ("auc was not computed, needs at least 0.94",)


def test_metric_limited_by_its_drop_alone_must_be_there_too():
    limits = {"auc": Limits(max_drop=0.01)}
    assert not verdict({}, limits=limits).blessed
    assert not verdict({}, limits=limits, baseline={"auc": 0.9}).blessed
    assert verdict({"auc": 0.5}, limits=limits).blessed


def test_baseline_that_lacks_the_metric_cannot_pass_the_candidate():
    limits = {"auc": Limits(max_drop=0.01)}
    found = verdict({"auc": 0.99}, limits=limits, baseline={"accuracy": 0.9})
    assert found.reasons == ("auc 0.99, needs at most 0.01 below the baseline, whose value is unknown",)


def test_refusal_names_metric_value_and_requirement():
    assert verdict({"auc": 0.71}).reasons == ("auc 0.71, needs at least 0.94",)


def test_refusal_against_the_baseline_shows_the_baseline():
    [reason] = verdict({"auc": 0.95}, baseline={"auc": 0.98}).reasons
    assert reason == "auc 0.95, needs at least 0.97 (baseline 0.98 less 0.01)"


def test_every_failed_check_is_told():
    limits = {"auc": Limits(min=0.9), "loss": Limits(max=0.3)}
    assert len(verdict({"auc": 0.8, "loss": 0.4}, limits=limits).reasons) == 2


def test_first_model_says_that_there_was_nothing_to_compare_with():
    found = verdict({"auc": 0.95})
    assert found.blessed
    assert found.reasons[-1] == "no earlier blessed model to compare with"


def test_without_thresholds_every_model_is_blessed():
    assert verdict({"auc": 0.1}, limits={}).blessed


def test_verdict_is_plain_json():
    document = json.loads(json.dumps(verdict({"auc": 0.95}, baseline={"auc": 0.94}).to_json()))
    assert document["metrics"] == {"auc": 0.95}
    assert document["checks"][0]["required"] == "at least 0.94"
