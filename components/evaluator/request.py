"""Reads an EvalConfig and checks that our executor gives the same results for it as TFX's. Pure.

Nothing unsupported is guessed: the whole evaluation then goes to TFX's own executor.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from slipway.components.metrics.definitions import METRICS, OF_OUTPUT, of_output, output_of, plain_name
from slipway.components.model_gate.trivial_scores import LABEL_PREFIX
from slipway.components.saved_model.signatures import SERVING_DEFAULT, TRANSFORM_FEATURES

EXAMPLE_COUNT = "ExampleCount"
LABEL_STATISTICS = "LabelStatisticsMetric"
PREDICTION_COUNTS = "PredictionCountsMetric"
ANSWERS_NAME = "answers"
"""Name of the metric whose value is JSON, as bytes."""

_OF_THE_GATE = {
    LABEL_STATISTICS: "slipway.components.model_gate.label_statistics_metric",
    PREDICTION_COUNTS: "slipway.components.model_gate.prediction_counts_metric",
}
_COUNTS = (EXAMPLE_COUNT, PREDICTION_COUNTS)
"""Metric classes that count unweighted rows, even if rows have weights."""
_CLASSES = {metric.class_name for metric in METRICS.values()}
QUANTILES = {metric.class_name for metric in METRICS.values() if metric.outputs == "quantiles"}
"""Metric classes whose settings name the quantiles that the model predicts."""
RANKS = {metric.class_name for metric in METRICS.values() if metric.outputs == "ranks"}
"""Metric classes whose settings name the column of the rows' groups."""


class ModelSpec(TypedDict, total=False):
    """A model of an EvalConfig; like the classes below, it lists only the fields that are read."""

    name: str
    label_key: str
    label_keys: dict[str, str]
    example_weight_key: str
    is_baseline: bool
    signature_name: str
    preprocessing_function_names: list[str]


class SlicingSpec(TypedDict, total=False):
    """The columns of one kind of slice."""

    feature_keys: list[str]


class MetricConfig(TypedDict, total=False):
    """A metric; `config` holds its settings as JSON."""

    class_name: str
    module: str
    config: str


class WeightOptions(TypedDict, total=False):
    """The choice of metrics with weights, without, or both."""

    weighted: bool
    unweighted: bool


class AggregationOptions(TypedDict, total=False):
    """The way in which the values of several outputs become one."""

    macro_average: bool


class MetricsSpec(TypedDict, total=False):
    """Metrics of some of the models."""

    metrics: list[MetricConfig]
    model_names: list[str]
    output_names: list[str]
    aggregate: AggregationOptions
    example_weights: WeightOptions


class EvalConfig(TypedDict, total=False):
    """TFMA's message as plain data, with the keys of the proto."""

    model_specs: list[ModelSpec]
    slicing_specs: list[SlicingSpec]
    metrics_specs: list[MetricsSpec]


class NotOursError(Exception):
    """Only TFX's own executor supports this; the message names it, as a clause."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One output of one model.

    Attributes:
        name: the model's name in the metrics' keys; empty if there is only one model.
        label: the transformed feature that holds the output's label.
        is_baseline: whether the other model is compared with this one.
        weight: the transformed feature that holds the weight of a row; empty: all rows count the same.
        output: the name of the output if the model has several, else empty.
    """

    name: str
    label: str
    is_baseline: bool
    weight: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """The metrics, slices and models to evaluate.

    Attributes:
        models: the candidate and, if there is one, the baseline; one entry for each output.
        slices: the columns of each kind of slice, sorted, without repeats; () stands for all rows.
        metrics: metric classes by metric name, without the metrics below; with several outputs, `sold/auc`.
        averages: classes of the metrics that are the mean over all outputs, by metric name; each is also
            among the `metrics` of every output.
        quantiles: the quantiles of the label that the model predicts, ascending; for metrics of quantiles.
        group: the raw column that names the group of each row; for metrics of ranks; empty: none.
        example_count: the name of the row count; None: rows are not counted.
        label_statistics: whether to report the labels of each slice.
        answers: whether to report the answers together with the labels.
    """

    models: tuple[ModelRequest, ...]
    slices: tuple[tuple[str, ...], ...]
    metrics: Mapping[str, str]
    averages: Mapping[str, str] = field(default_factory=dict)
    quantiles: tuple[float, ...] = ()
    group: str = ""
    example_count: str | None = None
    label_statistics: bool = False
    answers: bool = False

    @property
    def weight(self) -> str:
        """The candidate's weight feature; it applies to both models, so that only the models differ."""
        return next(model.weight for model in self.models if not model.is_baseline)

    def is_weighted(self, metric: str) -> bool:
        """Return True if a metric, or a statistic of the labels, depends on the rows' weights."""
        is_of_labels = plain_name(metric).startswith(LABEL_PREFIX)
        return bool(self.weight) and (metric in (*self.metrics, *self.averages) or is_of_labels)

    def metrics_of(self, output: str) -> dict[str, str]:
        """Return the metrics of one output."""
        return {name: each for name, each in self.metrics.items() if output_of(name) == output}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to slice by, sorted."""
        return tuple(sorted({column for columns in self.slices for column in columns}))


def read_request(config: EvalConfig) -> Request:
    """Read the request from a configuration.

    Args:
        config: with TFMA's defaults filled in.

    Raises:
        NotOursError: the configuration uses something that is not supported here.
    """
    _only(config, {"model_specs", "slicing_specs", "metrics_specs"}, "eval_config")
    by_spec = [_models(spec) for spec in config.get("model_specs", ())]
    names = [heads[0].name for heads in by_spec]
    if not 1 <= len(by_spec) <= 2 or sum(not heads[0].is_baseline for heads in by_spec) != 1:
        raise NotOursError("it names other models than a candidate and a baseline")
    models = tuple(head for heads in by_spec for head in heads)
    outputs = [head.output for head in by_spec[0]]
    if any([head.output for head in heads] != outputs for heads in by_spec):
        raise NotOursError("its models have labels of different outputs")
    specs = [_columns(spec) for spec in config.get("slicing_specs", [SlicingSpec()])]
    has_weights = any(model.weight for model in models)
    if has_weights and not all(model.weight for model in models):
        raise NotOursError("it has weights of one of the models only")
    metrics: dict[str, str] = {}
    quantiles: set[tuple[float, ...]] = set()
    groups: set[str] = set()
    averages: dict[str, str] = {}
    for spec in config.get("metrics_specs", ()):
        _only(spec, set(MetricsSpec.__annotations__), "metrics_specs")
        if sorted(spec.get("model_names", names)) != sorted(names):
            raise NotOursError("it has metrics of one of the models only")
        if "aggregate" in spec:
            averages |= _averages(spec, outputs)
            continue
        for metric in spec.get("metrics", ()):
            name, class_name = _metric(metric)
            if class_name in QUANTILES:
                quantiles.add(tuple(json.loads(metric["config"])["quantiles"]))
            if class_name in RANKS:
                groups.add(json.loads(metric["config"])["group"])
            name = of_output(_output(spec, class_name, outputs), name)
            if has_weights and (class_name in _COUNTS) == _is_weighted(spec):
                raise NotOursError(
                    f"it has {class_name} {'with' if class_name in _COUNTS else 'without'} weights"
                )
            if name in metrics:
                raise NotOursError(f"it has two metrics called {name}")
            metrics[name] = class_name
    if not metrics:
        raise NotOursError("it names no metrics")
    if list(metrics.values()).count(EXAMPLE_COUNT) > 1:
        raise NotOursError(f"it has {EXAMPLE_COUNT} twice")
    classes = list(metrics.values())
    for of_each in (LABEL_STATISTICS, PREDICTION_COUNTS):
        if classes.count(of_each) not in (0, len(outputs)):
            raise NotOursError(f"it has {of_each} of some outputs only")
    for name in averages:
        if any(of_output(output, name) not in metrics for output in outputs):
            raise NotOursError(f"it has the mean of {name} over outputs that it is not computed of")
    if len(quantiles) > 1 or len(groups) > 1:
        raise NotOursError("it has metrics of different quantiles, or of different groups")
    by_class = {class_name: name for name, class_name in metrics.items()}
    return Request(
        models=models,
        slices=tuple(dict.fromkeys(specs)),
        metrics={name: each for name, each in metrics.items() if each in _CLASSES},
        averages=averages,
        quantiles=next(iter(quantiles), ()),
        group=next(iter(groups), ""),
        example_count=by_class.get(EXAMPLE_COUNT),
        label_statistics=LABEL_STATISTICS in by_class,
        answers=PREDICTION_COUNTS in by_class,
    )


def _only(found: Mapping[str, object], known: set[str], where: str) -> None:
    for key, value in found.items():
        if key not in known and value:
            raise NotOursError(f"it has {where}.{key}")


def _averages(spec: MetricsSpec, outputs: Sequence[str]) -> dict[str, str]:
    """Return the metrics of a spec that are means over all outputs: the class by the name."""
    is_mean = spec["aggregate"] == {"macro_average": True}
    if not is_mean or sorted(spec.get("output_names", ())) != sorted(outputs):
        raise NotOursError("it aggregates otherwise than by the mean over all outputs")
    if "example_weights" in spec:
        raise NotOursError("it has means over outputs with weights of their own, or without")
    found = dict(map(_metric, spec.get("metrics", ())))
    if not set(found.values()) <= _CLASSES:
        raise NotOursError("it has means over outputs of what is no metric")
    return found


def _output(spec: MetricsSpec, class_name: str, outputs: Sequence[str]) -> str:
    """Return the output that a metric of a spec measures; the row count has none."""
    named = spec.get("output_names", [])
    if class_name == EXAMPLE_COUNT:
        if named:
            raise NotOursError("it counts the rows of an output")
        return ""
    if not named and outputs == [""]:
        return ""
    if len(named) != 1 or named[0] not in outputs:
        raise NotOursError("it has metrics of other outputs than those with a label")
    return named[0]


def _models(spec: ModelSpec) -> list[ModelRequest]:
    known = {"name", "label_key", "label_keys", "example_weight_key", "is_baseline", "signature_name"}
    _only(spec, known | {"preprocessing_function_names"}, "model_specs")
    if spec.get("signature_name", SERVING_DEFAULT) != SERVING_DEFAULT:
        raise NotOursError(f"it asks for the signature {spec['signature_name']}")
    if list(spec.get("preprocessing_function_names", ())) != [TRANSFORM_FEATURES]:
        raise NotOursError(f"its labels do not come from the signature {TRANSFORM_FEATURES}")
    labels = spec.get("label_keys") or {"": spec.get("label_key", "")}
    if not all(labels.values()):
        raise NotOursError("it names no label")
    return [
        ModelRequest(
            spec.get("name", ""),
            label,
            bool(spec.get("is_baseline")),
            spec.get("example_weight_key", ""),
            output,
        )
        for output, label in sorted(labels.items())
    ]


def _is_weighted(spec: MetricsSpec) -> bool:
    """Return True if the metrics of a spec use the weights of its models."""
    options = spec.get("example_weights", WeightOptions(weighted=True))
    if bool(options.get("weighted")) == bool(options.get("unweighted")):
        raise NotOursError("it has metrics both with weights and without, or neither")
    return bool(options.get("weighted"))


def _columns(spec: SlicingSpec) -> tuple[str, ...]:
    _only(spec, {"feature_keys"}, "slicing_specs")
    keys: Sequence[str] = spec.get("feature_keys", ())
    if len(set(keys)) < len(keys):
        raise NotOursError(f"it slices by one column twice: {', '.join(keys)}")
    return tuple(sorted(keys))


def _metric(metric: MetricConfig) -> tuple[str, str]:
    _only(metric, {"class_name", "module", "config"}, "metrics")
    class_name, module = metric.get("class_name", ""), metric.get("module", "")
    settings = json.loads(metric.get("config") or "{}") or {}
    if class_name in _OF_THE_GATE and module == _OF_THE_GATE[class_name] and not settings:
        return class_name, class_name
    if module or class_name not in {*_CLASSES, EXAMPLE_COUNT}:
        raise NotOursError(f"it has the metric {'.'.join(filter(None, (module, class_name)))}")
    default = {"name": "example_count"} if class_name == EXAMPLE_COUNT else {}
    settings = {**default, **settings}
    more = {"quantiles"} if class_name in QUANTILES else {"group"} if class_name in RANKS else set()
    if set(settings) != {"name"} | more or not isinstance(settings["name"], str):
        raise NotOursError(f"it has {class_name} with settings of its own")
    # TFMA replaces an empty name, keeps "_" for itself, the gate's own metrics use the other two, and what
    # stands before a slash would be taken for an output.
    name = settings["name"]
    if name.startswith(("_", LABEL_PREFIX)) or name in ("", ANSWERS_NAME) or OF_OUTPUT in name:
        raise NotOursError(f"it has {class_name} with the name {name!r}")
    return name, class_name
