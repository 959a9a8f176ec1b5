"""Turns the workload's `data_gate` and `evaluate` into the settings of the gates."""

from dataclasses import asdict, fields
from pathlib import Path

from slipway.components.data_gate.rule_limits import Limits
from slipway.components.metrics.definitions import is_of_groups, metric_of, of_output, output_of
from slipway.components.model_gate.serving_rules import ServingLimits
from slipway.components.model_gate.threshold_rules import Threshold
from slipway.components.model_gate.verdict import OVERALL
from slipway.components.parameters import as_parameter
from slipway.components.project import PROJECT_ROOT
from slipway.components.trainer.labels import served_label_columns
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.data_gate import reference_folder, span_of
from slipway.pipeline.config.evaluate import EvaluateConfig
from slipway.pipeline.wiring.ingest_options import ingest_options

_DATA_LIMITS = {each.name for each in fields(Limits)}
# Names of groups are new in each split, and numbers of persons only grow: no model is made from them.
_ANY_GROUPS = {
    **{f"max_{kind}_{by}": 1.0 for kind in ("drift", "skew") for by in ("l_infinity", "jensen_shannon")},
    "max_scale": 1e300,
}
# The other keys of `evaluate.serving` configure the measurement.
_SERVING_LIMITS = {each.name for each in fields(ServingLimits)}


def data_gate_settings(config: WorkloadConfig) -> dict[str, object]:
    """Return the DataGate's settings by its own parameter names."""
    gate = config.data_gate
    limits = gate.model_dump(mode="json", exclude_none=True, include=_DATA_LIMITS)
    if group := config.transform.group:
        limits["features"][group] = {**_ANY_GROUPS, **limits["features"].get(group, {})}
    return {
        "label": config.data.label,
        "limits": as_parameter({"max_bad_share": config.data.max_bad_share, **limits}),
        "options": as_parameter(ingest_options(config.data).to_json()),
        "reference_folder": reference_folder(gate.reference),
        **({} if (span := span_of(gate.reference)) is None else {"reference_span": span}),
        "serving_folder": gate.serving_statistics or "",
        "preprocessing_fn": config.transform.preprocessing_fn,
        "label_feature": config.transform.labels[0],
        "schema_file": _shown(config.schema_path),
        "sample_rows": gate.sample_rows,
        "pass_through": list(config.transform.apart),
    }


def model_gate_settings(evaluate: EvaluateConfig) -> dict[str, object]:
    """Return the ModelGate's settings; `thresholds` holds the limits of `overall` and of slices, by metric.

    They include only the limits of the serving check: a changed limit then does not repeat the measurement.
    """
    groups = {OVERALL: evaluate.thresholds, **evaluate.slice_limits}
    serving = evaluate.serving
    return {
        "metrics": list(evaluate.metrics),
        "thresholds": {
            name: {metric: _given(threshold) for metric, threshold in group.items()}
            for name, group in groups.items()
        },
        "min_slice_rows": evaluate.min_slice_rows,
        "beat_trivial": evaluate.beat_trivial,
        "serving_limits": serving.model_dump(exclude_none=True, include=_SERVING_LIMITS) if serving else {},
    }


def reference_models_settings(config: WorkloadConfig) -> dict[str, object]:
    """Return the ReferenceModels' settings: the models, their labels, and the metrics to compute.

    The metrics are shown beside the network's. Keras has no metrics of groups; those are not shown.
    """
    evaluate, labels = config.evaluate, _labels(config)
    named = [name for name in evaluate.metrics if not is_of_groups(name)]
    return {
        "labels": labels,
        "tasks": tasks(config),
        "metrics": {
            output: {name: metric_of(name).class_name for name in named if output_of(name) == output}
            for output in labels
        },
        "means": {
            name: [of_output(output, name) for output in labels]
            for name in named
            if output_of(name) not in labels
        },
        "models": list(evaluate.baselines),
    }


def tasks(config: WorkloadConfig) -> dict[str, str]:
    """Return `classes` or `numbers`, the kind of its labels, for each output; a single output is named ""."""
    of_classes = {output_of(name) for name in config.evaluate.metrics if metric_of(name).is_of_classes}
    return {output: "classes" if output in of_classes else "numbers" for output in _labels(config)}


def class_names(config: WorkloadConfig) -> dict[str, object]:
    """Return `transform.classes` by the names that the ModelGate and manifests have for it.

    Returns:
        `classes`, the names of an only output's classes, perhaps empty; and, if any of several outputs has
        names, `output_classes`, by output.
    """
    named = {output: list(names) for output, names in config.transform.classes_by_output.items()}
    only = named.pop("", [])
    return {"classes": only, **({"output_classes": named} if named else {})}


def judges_age(config: WorkloadConfig) -> bool:
    """Return True if the data gate's verdict may change from one day to the next."""
    freshness = config.data_gate.freshness
    return freshness is not None and freshness.max_age_days is not None


def _given(threshold: Threshold) -> dict[str, float]:
    return {name: bound for name, bound in asdict(threshold).items() if bound is not None}


def _shown(schema: str | None) -> str:
    if schema is None:
        return ""
    path = Path(schema)
    return str(path.relative_to(PROJECT_ROOT)) if path.is_relative_to(PROJECT_ROOT) else schema


def _labels(config: WorkloadConfig) -> dict[str, str]:
    answers = served_label_columns(config.transform.label)
    return {"": answers} if isinstance(answers, str) else dict(answers)
