"""Builds the Evaluator's configuration from the workload's keys."""

import json
from collections.abc import Mapping, Sequence

from tensorflow_model_analysis.proto import config_pb2

from slipway.components.metrics.definitions import (
    is_of_groups,
    is_of_quantiles,
    metric_of,
    output_of,
    plain_name,
)

# The model names in the evaluation; evaluation.py reads them back.
CANDIDATE = "candidate"
BASELINE = "baseline"


def eval_config(
    *,
    label: str | Mapping[str, str],
    metrics: Sequence[str],
    slices: Sequence[Sequence[str]],
    weight: str | None = None,
    quantiles: Sequence[float] = (),
    group: str = "",
    own: Mapping[str, tuple[str, Mapping[str, object]]] | None = None,
) -> config_pb2.EvalConfig:
    """Return the Evaluator's configuration.

    It sets no thresholds: only ModelGate may bless a model, or the resolver of the latest blessed model would
    also find models that the gate refused.

    Args:
        label: the transformed feature that holds the label; of several outputs that of each, by its name.
        metrics: names in `definitions.METRICS`, e.g. `auc`; of several outputs `sold/auc`, and
            `auc` for the mean over all of them.
        slices: groups of raw feature names; the metrics are computed for each combination of their values,
            and always overall.
        weight: the transformed feature that holds the weight of a row in the metrics; counts of rows and
            answers are unweighted. None: all rows count the same.
        quantiles: the quantiles of the label that the model predicts, in this order; for metrics of
            quantiles.
        group: the raw column that names the group of each row; for metrics of ranks.
        own: custom metrics by name: the dotted path of a class, and the arguments of its constructor.
    """
    specs = []
    rows = config_pb2.MetricConfig(class_name="ExampleCount")
    if not isinstance(label, str):
        specs.append(_spec([rows], output="", is_weighted=False if weight else None))
    for output in ("",) if isinstance(label, str) else label:
        counts = [rows, _of_the_gate("PredictionCountsMetric", "prediction_counts_metric")]
        if output:
            counts = counts[1:]
        weighted = [
            *(_metric(name, quantiles, group) for name in metrics if output_of(name) == output),
            _of_the_gate("LabelStatisticsMetric", "label_statistics_metric"),
            *(_own(name, *each) for name, each in (own or {}).items() if output_of(name) == output),
        ]
        if weight:
            specs += [_spec(counts, output=output, is_weighted=False), _spec(weighted, output=output)]
        else:
            specs.append(_spec([*counts[:-1], *weighted, counts[-1]], output=output))
    if not isinstance(label, str) and (averaged := [name for name in metrics if not output_of(name)]):
        specs.append(
            config_pb2.MetricsSpec(metrics=[_metric(each) for each in averaged], output_names=list(label))
        )
        specs[-1].aggregate.macro_average = True
    return config_pb2.EvalConfig(
        model_specs=[_model_spec(name, label, weight) for name in (CANDIDATE, BASELINE)],
        slicing_specs=[
            config_pb2.SlicingSpec(),
            *(config_pb2.SlicingSpec(feature_keys=list(keys)) for keys in slices),
        ],
        metrics_specs=specs,
    )


def _spec(
    metrics: Sequence[config_pb2.MetricConfig], *, output: str = "", is_weighted: bool | None = None
) -> config_pb2.MetricsSpec:
    """Return the metrics of an output; `is_weighted=False` ignores weights, None leaves TFMA's default."""
    spec = config_pb2.MetricsSpec(metrics=metrics, output_names=[output] if output else [])
    if is_weighted is False:
        spec.example_weights.unweighted = True
    return spec


def _model_spec(name: str, label: str | Mapping[str, str], weight: str | None) -> config_pb2.ModelSpec:
    return config_pb2.ModelSpec(
        name=name,
        is_baseline=name == BASELINE,
        signature_name="serving_default",
        preprocessing_function_names=["transform_features"],
        example_weight_key=weight or "",
        **({"label_key": label} if isinstance(label, str) else {"label_keys": dict(label)}),
    )


def _metric(name: str, quantiles: Sequence[float] = (), group: str = "") -> config_pb2.MetricConfig:
    levels = {"quantiles": list(quantiles)} if is_of_quantiles(name) else {}
    groups = {"group": group} if is_of_groups(name) else {}
    config = json.dumps({"name": plain_name(name), **levels, **groups})
    return config_pb2.MetricConfig(class_name=metric_of(name).class_name, config=config)


def _own(name: str, path: str, settings: Mapping[str, object]) -> config_pb2.MetricConfig:
    module, _, class_name = path.rpartition(".")
    config = json.dumps({**settings, "name": plain_name(name)})
    return config_pb2.MetricConfig(class_name=class_name, module=module, config=config)


def _of_the_gate(class_name: str, module: str) -> config_pb2.MetricConfig:
    return config_pb2.MetricConfig(class_name=class_name, module=f"slipway.components.model_gate.{module}")
