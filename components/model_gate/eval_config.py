"""Makes the Evaluator's configuration from the workload's few keys."""

import json
from collections.abc import Sequence

from tensorflow_model_analysis.proto import config_pb2

from slipway.components.model_gate.metrics import METRICS

# The names by which the evaluation tells the two models apart; evaluation.py reads them back.
CANDIDATE = "candidate"
BASELINE = "baseline"


def eval_config(
    *, label: str, metrics: Sequence[str], slices: Sequence[Sequence[str]], weight: str | None = None
) -> config_pb2.EvalConfig:
    """The Evaluator's configuration.

    No thresholds are set in it: exactly one component blesses, the ModelGate, or the resolver of the latest
    blessed model would also find those that the gate refused.

    Args:
        label: the transformed feature that holds the label.
        metrics: names in `metrics.METRICS`, e.g. `auc`, `binary_accuracy`.
        slices: groups of raw feature names; the metrics are computed for each combination of their values,
            and always overall.
        weight: the transformed feature that says how much each row counts in the metrics; rows and answers
            are counted as they are. None: all rows count the same.
    """
    counts = [
        config_pb2.MetricConfig(class_name="ExampleCount"),
        config_pb2.MetricConfig(
            class_name="AnswersMetric", module="slipway.components.model_gate.answers_metric"
        ),
    ]
    weighted = [
        *map(_metric, metrics),
        config_pb2.MetricConfig(
            class_name="LabelStatisticsMetric", module="slipway.components.model_gate.label_statistics"
        ),
    ]
    return config_pb2.EvalConfig(
        model_specs=[_model_spec(name, label, weight) for name in (CANDIDATE, BASELINE)],
        slicing_specs=[
            config_pb2.SlicingSpec(),
            *(config_pb2.SlicingSpec(feature_keys=list(keys)) for keys in slices),
        ],
        metrics_specs=[
            config_pb2.MetricsSpec(
                metrics=counts, example_weights=config_pb2.ExampleWeightOptions(unweighted=True)
            ),
            config_pb2.MetricsSpec(metrics=weighted),
        ]
        if weight
        else [config_pb2.MetricsSpec(metrics=[counts[0], *weighted, counts[1]])],
    )


def _model_spec(name: str, label: str, weight: str | None) -> config_pb2.ModelSpec:
    return config_pb2.ModelSpec(
        name=name,
        is_baseline=name == BASELINE,
        signature_name="serving_default",
        preprocessing_function_names=["transform_features"],
        label_key=label,
        example_weight_key=weight or "",
    )


def _metric(name: str) -> config_pb2.MetricConfig:
    return config_pb2.MetricConfig(class_name=METRICS[name].class_name, config=json.dumps({"name": name}))
