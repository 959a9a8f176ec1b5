"""What the stock Evaluator measures, made from the workload's few keys."""

import json
from collections.abc import Sequence

import tensorflow_model_analysis as tfma

# The names by which the evaluation tells the two models apart; evaluation.py reads them back.
CANDIDATE = "candidate"
BASELINE = "baseline"


def eval_config(*, label: str, metrics: Sequence[str], slices: Sequence[Sequence[str]]) -> tfma.EvalConfig:
    """The Evaluator's configuration.

    No thresholds are set in it: exactly one component blesses, the ModelGate, or the resolver of the latest
    blessed model would also find those that the gate refused.

    Args:
        label: the transformed feature that holds the label.
        metrics: Keras metric names in snake case, e.g. `auc`, `binary_accuracy`.
        slices: groups of raw feature names; the metrics are computed for each combination of their values,
            and always overall.
    """
    return tfma.EvalConfig(
        model_specs=[_model_spec(CANDIDATE, label), _model_spec(BASELINE, label)],
        slicing_specs=[tfma.SlicingSpec(), *(tfma.SlicingSpec(feature_keys=list(keys)) for keys in slices)],
        metrics_specs=[tfma.MetricsSpec(metrics=[_metric(name) for name in ("example_count", *metrics)])],
    )


def _model_spec(name: str, label: str) -> tfma.ModelSpec:
    return tfma.ModelSpec(
        name=name,
        is_baseline=name == BASELINE,
        signature_name="serving_default",
        preprocessing_function_names=["transform_features"],
        label_key=label,
    )


def _metric(name: str) -> tfma.MetricConfig:
    # TFMA finds metrics by class name: AUC is the one class of Keras that is not plain camel case.
    class_name = "".join(word.capitalize() for word in name.split("_")).replace("Auc", "AUC")
    return tfma.MetricConfig(class_name=class_name, config=json.dumps({"name": name}))
