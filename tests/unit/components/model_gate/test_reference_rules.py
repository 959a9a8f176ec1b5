"""The network beside other models."""

import pytest

from components.model_gate.reference_rules import reference_checks


@pytest.mark.parametrize(
    ("metric", "network", "other", "earns"),
    [
        ("auc", 0.95, 0.94, True),
        ("auc", 0.94, 0.94, False),
        ("auc", 0.90, 0.94, False),
        ("mean_absolute_error", 1.0, 2.0, True),
        ("mean_absolute_error", 2.0, 1.0, False),
    ],
)
def test_network_that_is_no_better_is_warned_of_and_never_refused(metric, network, other, earns):
    [check] = reference_checks({"logistic": {metric: other}}, {metric: network}, [metric])
    assert check.passed is earns
    assert not check.stops
    assert earns or check.is_warning
    assert earns or "does not earn its cost: logistic" in check.reason


def test_first_metric_decides_and_what_has_no_better_side_is_passed_over():
    references = {"logistic": {"auc": 0.9, "binary_accuracy": 0.99}}
    checks = reference_checks(references, {"auc": 0.95, "binary_accuracy": 0.9}, ["auc", "binary_accuracy"])
    assert [check.metric for check in checks] == ["auc against logistic"]
    assert reference_checks(references, {}, ["auc"]) == []
