"""The network beside other models."""

import pytest

from slipway.components.model_gate.reference_model_rules import reference_checks
from slipway.components.model_gate.verdict import Check


@pytest.mark.parametrize(
    ("metric", "network", "other", "earns", "required", "theirs"),
    [
        ("auc", 0.95, 0.94, True, "above 0.94", "better"),
        ("auc", 0.94, 0.94, False, "above 0.94", "as well"),
        ("auc", 0.90, 0.94, False, "above 0.94", "better"),
        ("mean_absolute_error", 1.0, 2.0, True, "below 2", "better"),
        ("mean_absolute_error", 2.0, 2.0, False, "below 2", "as well"),
        ("mean_absolute_error", 2.0, 1.0, False, "below 1", "better"),
    ],
)
def test_network_that_is_no_better_is_warned_of_and_never_refused(
    metric, network, other, earns, required, theirs
):
    [check] = reference_checks({"logistic": {metric: other}}, {metric: network}, [metric])
    assert check == Check(
        metric=f"{metric} against logistic",
        slice="overall",
        required=required,
        got=network,
        baseline=None,
        passed=earns,
        stops=False,
        note=f"the model does not earn its cost: logistic does {theirs}",
    )


def test_first_metric_decides_and_what_has_no_better_side_is_passed_over():
    references = {"logistic": {"auc": 0.9, "binary_accuracy": 0.99}}
    checks = reference_checks(references, {"auc": 0.95, "binary_accuracy": 0.9}, ["auc", "binary_accuracy"])
    assert [check.metric for check in checks] == ["auc against logistic"]
    assert reference_checks(references, {}, ["auc"]) == []


def test_model_that_lacks_the_metric_is_passed_over():
    references = {"tree": {"binary_accuracy": 0.9}, "logistic": {"auc": 0.9}}
    checks = reference_checks(references, {"auc": 0.95}, ["auc"])
    assert [check.metric for check in checks] == ["auc against logistic"]


def test_metric_that_a_model_lacks_leaves_the_next_one_to_decide():
    references = {"tree": {"binary_accuracy": 0.9}, "logistic": {"auc": 0.9}}
    found = reference_checks(references, {"auc": 0.95, "binary_accuracy": 0.8}, ["auc", "binary_accuracy"])
    assert [(check.metric, check.passed) for check in found] == [
        ("binary_accuracy against tree", False),
        ("auc against logistic", True),
    ]
