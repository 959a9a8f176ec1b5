"""What of the workload reaches the gates."""

import pytest
from taxi_workload import taxi_workload

from slipway.components.parameters import from_parameter
from slipway.pipeline.config.data_gate import FeatureLimitsConfig
from slipway.pipeline.config.evaluate import EvaluateConfig
from slipway.pipeline.wiring.gate_settings import (
    class_names,
    data_gate_settings,
    model_gate_settings,
    reference_models_settings,
    tasks,
)


def test_gates_get_every_limit_of_the_workload_and_nothing_else():

    config = taxi_workload()
    limits = from_parameter(data_gate_settings(config)["limits"])
    assert limits["max_label_score_drop"] == 0.1
    assert limits["freshness"] == {
        "column": "trip_start_timestamp", "max_behind_days": 1.0, "max_ahead_days": 31.0
    }  # fmt: skip
    assert "reference" not in limits
    thresholds = model_gate_settings(config.evaluate)["thresholds"]
    assert thresholds["overall"]["auc"] == {"min": 0.94, "max_drop": 0.01}
    assert thresholds["payment_type"]["binary_accuracy"] == {"max_drop": 0.03, "confidence": 0.95}


@pytest.mark.parametrize(
    ("named", "evaluated"),
    [
        ("all", "all"),
        ("pay, hour", "hour, pay"),
        ("hour, pay", "hour, pay"),
        ("pay=Cash, hour=3", "hour=3, pay=Cash"),
        ("hour=3, pay=Cash", "hour=3, pay=Cash"),
        ('pay="Cash, not yet", hour=3', 'hour=3, pay="Cash, not yet"'),
        ("pay=Cash, hour", 'pay="Cash, hour"'),
        ('pay="Cash, hour=3"', 'pay="Cash, hour=3"'),
        ("pay", "pay"),
        ("pay=", "pay="),
    ],
)
def test_slices_have_the_names_of_the_evaluation_whatever_the_order_of_their_columns(named, evaluated):
    limits = {"auc": {"min": 0.5}}
    config = EvaluateConfig(slices=[["pay", "hour"], ["pay"]], slice_thresholds={named: limits})
    assert model_gate_settings(config)["thresholds"] == {"overall": {}, evaluated: limits}


def test_reference_models_are_fitted_to_each_output_by_its_own_task(project):
    from slipway.pipeline.config import load_workload

    config = load_workload(project / "workloads/fares/workload.yaml", root=project)
    settings = reference_models_settings(config)
    assert settings["labels"] == {"cost": "cost", "tip": "big_tip"}
    assert settings["tasks"] == {"cost": "numbers", "tip": "classes"}
    assert settings["metrics"]["tip"] == {"tip/auc": "AUC", "tip/binary_accuracy": "BinaryAccuracy"}
    assert settings["means"] == {}
    taxi = taxi_workload()
    assert reference_models_settings(taxi)["labels"] == {"": "big_tip"}


@pytest.mark.parametrize(
    ("workload", "gate", "manifest"),
    [
        ("taxi", {"classes": []}, {}),
        ("reviews", {"classes": ["bad", "good"]}, {"classes": ["bad", "good"]}),
        (
            "fares",
            {"classes": [], "output_classes": {"tip": ["small", "big"]}},
            {"output_classes": {"tip": ["small", "big"]}},
        ),
    ],
)
def test_names_of_classes_reach_the_gate_and_the_manifest(project, workload, gate, manifest):
    from slipway.pipeline.config import load_workload
    from slipway.pipeline.wiring.pushed_versions import about_model

    config = load_workload(project / f"workloads/{workload}/workload.yaml", root=project)
    assert class_names(config) == gate
    assert {key: each for key, each in about_model(config).items() if "classes" in key} == manifest


@pytest.mark.parametrize(
    ("metrics", "task"),
    [
        (["auc"], "classes"),
        (["precision"], "classes"),
        (["recall"], "classes"),
        (["f1_score"], "classes"),
        (["false_negatives", "true_negatives"], "classes"),
        (["binary_crossentropy"], "classes"),
        (["top_k_categorical_accuracy"], "classes"),
        (["mean_squared_error", "recall"], "classes"),
        (["mean_squared_error", "cosine_similarity"], "numbers"),
        (["pinball_loss"], "numbers"),
        (["ndcg"], "numbers"),
    ],
)
def test_one_metric_of_classes_tells_that_labels_are_classes(metrics, task):

    config = taxi_workload()
    judged = config.evaluate.model_copy(update={"metrics": metrics})
    assert tasks(config.model_copy(update={"evaluate": judged})) == {"": task}


def test_new_groups_are_no_drift_unless_the_workload_limits_it():
    config = taxi_workload()
    transform = config.transform.model_copy(update={"group": "company"})
    own = config.data_gate.model_copy(update={"features": {"company": FeatureLimitsConfig(max_scale=2)}})
    limits = [
        from_parameter(data_gate_settings(config.model_copy(update=given))["limits"])["features"]
        for given in ({}, {"transform": transform}, {"transform": transform, "data_gate": own})
    ]
    assert "company" not in limits[0]
    assert {limits[1]["company"][f"max_{kind}_jensen_shannon"] for kind in ("drift", "skew")} == {1.0}
    assert {limits[1]["company"][f"max_{kind}_l_infinity"] for kind in ("drift", "skew")} == {1.0}
    assert limits[2]["company"] == {**limits[1]["company"], "max_scale": 2}
