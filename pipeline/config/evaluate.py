"""The workload file's `evaluate`: the evaluation of a trained model."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import Field, JsonValue, model_validator

from slipway.components.evaluator.own_metrics import TAKEN_NAMES
from slipway.components.metrics.definitions import METRICS, is_of_quantiles, plain_name
from slipway.components.model_gate.serving_rules import ServingLimits
from slipway.components.model_gate.slice_names import columns_name, named_slices
from slipway.components.model_gate.threshold_rules import EVERY_SLICE, Threshold
from slipway.components.model_gate.trivial_rules import BeatTrivial
from slipway.components.model_gate.trivial_scores import LABEL_PREFIX
from slipway.components.model_gate.verdict import OVERALL
from slipway.components.nearest import nearest
from slipway.components.reference_models import ReferenceModel
from slipway.pipeline.config.section import (
    ClassPath,
    MetricName,
    Metrics,
    Section,
    SettingsOf,
    Slices,
    Text,
    setting_of,
)
from slipway.pipeline.config.settings_errors import KeyRuleError

Quantiles = Annotated[tuple[Annotated[float, Field(gt=0, lt=1)], ...], Field(strict=False)]
DEFAULT_METRICS = ("auc", "binary_accuracy")
References = Annotated[tuple[ReferenceModel, ...], Field(strict=False)]


class ServingConfig(Section):
    """Requirements on the exported model where there is only TensorFlow; see docs/gates.md."""

    rows: int = Field(
        default=256, ge=1, le=10_000, description="Number of real rows of the eval split to query it with."
    )
    tolerance: float = setting_of(ServingLimits, "tolerance")
    max_p99_ms: float | None = setting_of(ServingLimits, "max_p99_ms")
    max_batch_p99_ms: float | None = setting_of(ServingLimits, "max_batch_p99_ms")
    min_rows_per_s: float | None = setting_of(ServingLimits, "min_rows_per_s")
    max_load_s: float | None = setting_of(ServingLimits, "max_load_s")
    max_size_mb: float | None = setting_of(ServingLimits, "max_size_mb")
    max_memory_mb: float | None = setting_of(ServingLimits, "max_memory_mb")
    limit_s: float = Field(
        default=120.0, gt=0, description="Seconds after which the whole check is ended and fails."
    )


class OwnMetricConfig(Section):
    """A metric of one's own."""

    class_path: ClassPath = Field(
        alias="class",
        description="Dotted path of the class: of tfma.metrics.Metric, or of tf_keras.metrics.Metric.",
        examples=["workloads.taxi.metrics.Gain"],
    )
    settings: dict[Text, JsonValue] = Field(
        default={}, description="Arguments for the class's constructor, besides its name."
    )


class EvaluateConfig(Section):
    """How the trained model is judged on the eval split."""

    metrics: Metrics = Field(
        default=DEFAULT_METRICS,
        description="Keras metrics to compute, by their snake_case names; for a model with several "
        "outputs OUTPUT/METRIC, such as sold/auc. If a row may have any of several labels, METRIC stands "
        "for that of each, LABEL/METRIC, and for their mean.",
    )
    quantiles: Quantiles = Field(
        default=(),
        description="Quantiles of the label that the model predicts, in rising order; their metrics are "
        "pinball_loss, interval_coverage, interval_width and quantile_crossing.",
        examples=[[0.1, 0.5, 0.9]],
    )
    own_metrics: dict[MetricName, OwnMetricConfig] = Field(
        default={},
        description="Metrics of your own, by name; TensorFlow Model Analysis computes them, row by row.",
    )
    slices: Slices = Field(
        default=(),
        description="Lists of raw columns; the metrics are also computed for each of their values.",
    )
    thresholds: dict[MetricName, SettingsOf[Threshold]] = Field(
        default={}, description="Bounds per metric that the model must keep to be blessed and pushed."
    )
    slice_thresholds: dict[Text, dict[MetricName, SettingsOf[Threshold]]] = Field(
        default={},
        description="The same for slices: 'all' of them, those of a column (payment_type) or a single one "
        "(payment_type=Cash).",
    )
    min_slice_rows: int = Field(
        default=100, ge=1, description="Slices with fewer rows in the eval split are not judged."
    )
    beat_trivial: BeatTrivial = Field(
        default="one",
        description="In how many of the metrics a model must beat the best constant answer (the "
        "majority, the mean) with 95% confidence; with one, it may be worse in no other. none: only "
        "report it.",
    )

    baselines: References = Field(
        default=(),
        description="Models of scikit-learn to fit on the same transformed examples and report alongside "
        "the network: logistic (for numbers: ridge regression) and boosted_trees.",
    )
    serving: ServingConfig | None = Field(
        default=ServingConfig(),
        description="Check of the exported model in a process that has only TensorFlow; null: none.",
    )

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        for key, items in (
            ("metrics", self.metrics),
            ("slices", self.slices),
            ("baselines", self.baselines),
        ):
            for index, item in enumerate(items):
                if item in items[:index]:
                    raise KeyRuleError("given twice; keep one", key, index)
        for index, metric in enumerate(self.metrics):
            if plain_name(metric) not in METRICS:
                raise KeyRuleError(_unknown_metric(metric), "metrics", index)
        self._check_quantiles()
        self._check_own_metrics()
        for index, keys in enumerate(self.slices):
            if tuple(keys) in ((EVERY_SLICE,), (OVERALL,)):
                words = f"{keys[0]} has a meaning of its own in limits; give the column another name"
                raise KeyRuleError(words, "slices", index)
        columns = [columns_name(keys) for keys in self.slices]
        single = [", ".join(f"{column}=VALUE" for column in sorted(keys)) for keys in self.slices]
        known: set[str] = set()
        for name in self.slice_thresholds:
            evaluated = self._as_evaluated(name)
            if evaluated is None:
                listed = ", ".join([EVERY_SLICE, *columns, *single])
                raise KeyRuleError(
                    f"not a slice of evaluate.slices; there are: {listed}", "slice_thresholds", name
                )
            if evaluated in known:
                raise KeyRuleError("given twice, with its columns in another order", "slice_thresholds", name)
            known.add(evaluated)
        for path, metric, threshold in self._all_thresholds():
            self._check_threshold(path, metric, threshold)
        return self

    @property
    def slice_limits(self) -> dict[str, dict[str, Threshold]]:
        """`slice_thresholds` with the names that slices have in an evaluation."""
        return {self._as_evaluated(name) or name: group for name, group in self.slice_thresholds.items()}

    def _as_evaluated(self, name: str) -> str | None:
        """Return the name in an evaluation, which sorts a slice's columns; None if there is no such slice."""
        if name == EVERY_SLICE:
            return name
        exact: set[str] = set()
        plain: set[str] = set()
        for each in self.slices:
            if name in (", ".join(each), ", ".join(sorted(each)), columns_name(each)):
                return columns_name(each)
            for keys in (each, sorted(each)):
                of_exact, of_plain = named_slices(name, keys)
                exact |= of_exact
                plain |= of_plain
        found = sorted(exact or plain)
        if len(found) > 1:
            words = f"may mean {' or '.join(found)}; write it as one of these"
            raise KeyRuleError(words, "slice_thresholds", name)
        return next(iter(found), None)

    def _check_quantiles(self) -> None:
        if list(self.quantiles) != sorted(set(self.quantiles)):
            raise KeyRuleError("must rise, each above the one before", "quantiles")
        named = [index for index, metric in enumerate(self.metrics) if is_of_quantiles(metric)]
        if self.quantiles and not named:
            raise KeyRuleError(
                "needs a metric of quantiles, such as pinball_loss, in evaluate.metrics", "quantiles"
            )
        for index in named:
            if not self.quantiles:
                words = "is of quantiles; name them in evaluate.quantiles, such as [0.1, 0.5, 0.9]"
                raise KeyRuleError(words, "metrics", index)
            if len(self.quantiles) == 1 and plain_name(self.metrics[index]) != "pinball_loss":
                raise KeyRuleError("needs two quantiles or more in evaluate.quantiles", "metrics", index)
        if named and self.baselines:
            raise KeyRuleError("predict one number, but evaluate.quantiles names quantiles", "baselines")

    @model_validator(mode="before")
    @classmethod
    def _metrics_of_quantiles(cls, data: Any) -> Any:
        quantiles = data.get("quantiles") if isinstance(data, dict) else None
        if not isinstance(quantiles, list | tuple) or not quantiles or "metrics" in data:
            return data
        of_several = ["interval_coverage", "quantile_crossing"] if len(quantiles) > 1 else []
        return {**data, "metrics": ["pinball_loss", *of_several]}

    def _check_own_metrics(self) -> None:
        modules: dict[str, str] = {}
        for name, own in self.own_metrics.items():
            plain = plain_name(name)
            if plain in METRICS:
                raise KeyRuleError(
                    "is a metric of evaluate.metrics; choose another name", "own_metrics", name
                )
            if plain in TAKEN_NAMES or plain.startswith(LABEL_PREFIX):
                raise KeyRuleError("is a name that the evaluation uses; choose another", "own_metrics", name)
            if "name" in own.settings:
                raise KeyRuleError("is the key above; remove it", "own_metrics", name, "settings", "name")
            module, _, class_name = own.class_path.rpartition(".")
            if modules.setdefault(class_name, module) != module:
                words = f"has the class name of {modules[class_name]}.{class_name}; rename one"
                raise KeyRuleError(words, "own_metrics", name, "class")

    def _all_thresholds(self) -> Iterator[tuple[tuple[str, ...], str, Threshold]]:
        groups: dict[tuple[str, ...], Mapping[str, Threshold]] = {("thresholds",): self.thresholds}
        groups |= {("slice_thresholds", name): group for name, group in self.slice_thresholds.items()}
        for path, group in groups.items():
            for metric, threshold in group.items():
                yield (*path, metric), metric, threshold

    def _check_threshold(self, path: tuple[str, ...], metric: str, threshold: Threshold) -> None:
        low, high = threshold.min, threshold.max
        if low is not None and high is not None and low > high:
            raise KeyRuleError(f"min ({low}) is above max ({high}); no value can pass", *path)
        if (low, high, threshold.max_drop, threshold.max_rise) == (None, None, None, None):
            raise KeyRuleError("sets no bound; give min, max, max_drop or max_rise", *path)
        if metric not in (*self.metrics, *self.own_metrics):
            listed = ", ".join((*self.metrics, *self.own_metrics))
            own = " or evaluate.own_metrics" if self.own_metrics else ""
            raise KeyRuleError(f"not one of evaluate.metrics{own} ({listed}); add it there", *path)
        known = METRICS.get(plain_name(metric))
        is_either = known is None or known.better is None  # a custom metric, or one such as a coverage
        if is_either and threshold.max_drop is not None and threshold.max_rise is not None:
            raise KeyRuleError(
                "has max_drop (higher is better) and max_rise (lower is better); keep one", *path
            )
        if known is None:
            return
        for key, better, other in (("max_drop", "lower", "max_rise"), ("max_rise", "higher", "max_drop")):
            if getattr(threshold, key) is not None and known.better == better:
                raise KeyRuleError(f"of {metric} {better} is better; use {other}", *path, key)
        if known.at_most is not None and threshold.min is not None and threshold.min > known.at_most:
            words = (
                f"must be at most {known.at_most:g}: no model's {metric} is higher, and none would be blessed"
            )
            raise KeyRuleError(words, *path, "min")


def _unknown_metric(name: str) -> str:
    found = nearest(plain_name(name), list(METRICS))
    if found:
        return f"no metric of that name; nearest: {found}"
    return f"no metric of that name; there are: {', '.join(METRICS)}"
