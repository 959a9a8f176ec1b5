"""Checks the measurements against the workload's thresholds. Pure: it takes numbers and returns checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from slipway.components.metrics.definitions import METRICS, is_of_groups, metric_of, output_of, plain_name
from slipway.components.model_gate.check import OVERALL, Check
from slipway.components.model_gate.intervals import (
    FEW_FREEDOM,
    Spread,
    auc_bounds,
    least_difference,
    proportion_bounds,
)
from slipway.components.model_gate.trivial import LabelStatistics, slice_columns
from slipway.components.settings import setting

EVERY_SLICE = "all"
"""The key of `evaluate.slice_thresholds` that stands for every slice."""

# Confidence of each of two bounds, for 95 % between them.
_TWO_SIDED = 0.975

# Whether a formula exists does not depend on the confidence.
_ANY_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Threshold:
    """Bounds of one metric; a model outside them is not blessed.

    Each is in the metric's own unit.
    """

    min: float | None = setting(None, "The lowest value that is blessed.")
    max: float | None = setting(None, "The highest value that is blessed.")
    max_drop: float | None = setting(
        None,
        "How far it may fall below the last blessed model's value, for metrics where higher is better.",
        ge=0,
    )
    max_rise: float | None = setting(
        None,
        "How far it may rise above the last blessed model's value, for metrics where lower is better.",
        ge=0,
    )
    confidence: float | None = setting(
        None,
        "Confidence, for example 0.95: the value's confidence bound must then meet min and max, and a "
        "drop counts only beyond chance.",
        gt=0.5,
        lt=1,
    )


@dataclass(frozen=True)
class Measured:
    """The evaluation of one slice.

    Attributes:
        metrics: the candidate's metrics.
        baseline: those of the latest blessed model; empty if there is none.
        labels: the slice's labels; None if they are not known.
        spreads: how far chance moves the candidate's values, where measured.
        difference_spreads: the same for candidate minus baseline on the same rows.
        labels_of_outputs: the labels of each output, if a model has several.
    """

    metrics: Mapping[str, float]
    baseline: Mapping[str, float]
    labels: LabelStatistics | None
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    difference_spreads: Mapping[str, Spread] = field(default_factory=dict)
    labels_of_outputs: Mapping[str, LabelStatistics] = field(default_factory=dict)

    def of_output(self, output: str) -> "Measured":
        """Return the evaluation with the labels of one output; an empty name stands for the only output."""
        return replace(self, labels=self.labels_of_outputs.get(output)) if output else self

    @property
    def defined(self) -> dict[str, float]:
        """The candidate's metrics that are meaningful here: an AUC over labels of one class is left out."""
        return {
            name: value
            for name, value in self.metrics.items()
            if not _is_undefined(name, self.of_output(output_of(name)))
        }

    @property
    def rows(self) -> float:
        """Number of examples in the slice."""
        return self.metrics.get("example_count", self.labels.rows if self.labels else 0.0)

    @property
    def telling_rows(self) -> float:
        """How many rows of equal weight tell as much; without weights, the number of rows with a label."""
        labels = self._any_labels
        # A row may have several labels, or none.
        return min(self.rows * labels.telling, labels.rows) if labels else self.rows

    @property
    def has_weights(self) -> bool:
        """Whether weights differ so much that the effective number of rows is lower than their number."""
        labels = self._any_labels
        # Rows without a label must not look like an effect of the weights.
        return labels is not None and round(self.rows * labels.telling) < round(self.rows)

    @property
    def _any_labels(self) -> LabelStatistics | None:
        # All outputs are measured with the same weights.
        return self.labels or next(iter(self.labels_of_outputs.values()), None)

    @property
    def rows_in_words(self) -> str:
        """The number of rows in words, with the effective number if that is lower."""
        worth = f", worth {self.telling_rows:,.0f} by their weights" if self.has_weights else ""
        return f"{self.rows:,.0f} rows{worth}"

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 95 % confidence intervals of the values that have one, by metric."""
        found = {}
        for name, value in self.defined.items():
            at = self.of_output(output_of(name))
            if not is_unbounded(name, at):
                found[name] = bounds(name, value, at, _TWO_SIDED, self.spreads.get(name))
        return found


def threshold_checks(
    thresholds: Mapping[str, Mapping[str, Threshold]],
    slices: Mapping[str, Measured],
    *,
    min_slice_rows: int,
) -> tuple[list[Check], list[str]]:
    """Check every slice that has limits.

    A metric that has a limit but no value, or a value that is NaN, fails: the gate never passes what it could
    not see. Without any baseline a drop or a rise cannot be checked and does not fail; with a baseline that
    lacks the metric overall it fails. A slice that the baseline did not have is not compared.

    Args:
        thresholds: `overall`, `all` slices, slices of a column (`payment_type`) or one slice
            (`payment_type=Cash`) -> metric -> limits.
        slices: by name, including `overall`.
        min_slice_rows: slices with fewer rows are not judged, >= 1.

    Returns:
        The checks, those of `overall` first, and notes on what was not judged.
    """
    overall = slices.get(OVERALL, Measured({}, {}, None))
    judged = [
        (metric, limits, OVERALL, overall.of_output(output_of(metric)))
        for metric, limits in thresholds.get(OVERALL, {}).items()
    ]
    notes: list[str] = []
    small = 0
    for name in sorted(slices.keys() - {OVERALL}):
        wanted = [(m, limits) for key in _keys_of(name) for m, limits in thresholds.get(key, {}).items()]
        if wanted and slices[name].rows < min_slice_rows:
            small += 1
            continue
        for metric, limits in wanted:
            at = slices[name].of_output(output_of(metric))
            if _is_undefined(metric, at):
                notes.append(f"{metric} is not judged on {name}: all its labels are equal")
            else:
                judged.append((metric, limits, name, at))
    if small:
        kept = "slice is" if small == 1 else "slices are"
        notes.append(f"{small} {kept} not judged: fewer than {min_slice_rows} rows (evaluate.min_slice_rows)")
    checks = [check for each in judged for check in _checks(*each)]
    unsure = [(metric, name) for metric, limits, name, at in judged if _lacks_bounds(metric, limits, at)]
    return checks, notes + not_sure(unsure) + _not_there(thresholds, slices)


def bounds(
    metric: str, value: float, at: Measured, confidence: float, spread: Spread | None = None
) -> tuple[float, float]:
    """Return the one-sided bounds of a value at this confidence.

    They come from a formula if the metric has one, which also holds for a perfect value and for few rows;
    else from the spread.

    Args:
        value: the candidate's or the baseline's.
        confidence: of each bound by itself, 0.5 to 1.
        spread: how far chance moves the value; None: it was not measured, and without a formula the value is
            its own bound.
    """
    found = _by_formula(metric, value, at, confidence)
    if found is not None or spread is None:
        return found or (value, value)
    half, known = spread.half(confidence), METRICS.get(plain_name(metric))
    least, most = (known.at_least, known.at_most) if known else (None, None)
    low = value - half if least is None else min(value, max(value - half, least))
    high = value + half if most is None else max(value, min(value + half, most))
    return low, high


def difference_bounds(metric: str, at: Measured, confidence: float) -> tuple[float, float]:
    """Return the one-sided bounds of candidate minus baseline, by the spread of the difference.

    Few rows may all agree by chance, so for few rows each bound is the wider of that one and the bound for
    two models evaluated on different rows. The latter also applies if no spread was measured.

    Args:
        metric: must be in both models' metrics.
        confidence: of each bound by itself, 0.5 to 1.
    """
    got, baseline = at.metrics[metric], at.baseline[metric]
    spread = at.difference_spreads.get(metric)
    if spread is not None:
        half = spread.half(confidence)
        on_same_rows = got - baseline - half, got - baseline + half
        if spread.freedom >= FEW_FREEDOM:
            return on_same_rows
    # On the same rows chance moves the baseline's value about as far as the candidate's.
    ours = (got, *bounds(metric, got, at, confidence, at.spreads.get(metric)))
    theirs = (baseline, *bounds(metric, baseline, at, confidence, at.spreads.get(metric)))
    on_others = least_difference(ours, theirs), -least_difference(theirs, ours)
    if spread is None:
        return on_others
    return min(on_same_rows[0], on_others[0]), max(on_same_rows[1], on_others[1])


def _by_formula(metric: str, value: float, at: Measured, confidence: float) -> tuple[float, float] | None:
    if _is_mean(metric, at):
        return None  # the labels of a row may be correlated, which only the spread accounts for
    kind = metric_of(metric).interval if plain_name(metric) in METRICS else None
    if kind == "proportion" and at.telling_rows > 0:
        return proportion_bounds(min(max(value, 0.0), 1.0), at.telling_rows, confidence=confidence)
    labels = at.labels
    if kind == "auc" and labels and labels.is_binary:
        return auc_bounds(value, *labels.rows_by_class, confidence=confidence)
    return None


def _lacks_bounds(metric: str, limits: Threshold, at: Measured) -> bool:
    """Return True if limits have a confidence but the metric has no bounds."""
    if limits.confidence is None:
        return False
    of_value = limits.min is not None or limits.max is not None
    of_difference = limits.max_drop is not None or limits.max_rise is not None
    is_compared = of_difference and at.baseline.get(metric) is not None
    return (of_value or (is_compared and metric not in at.difference_spreads)) and is_unbounded(metric, at)


def is_unbounded(metric: str, at: Measured) -> bool:
    """Return True if there is a value, but neither a formula nor a spread for its bounds."""
    got = at.metrics.get(metric)
    if got is None or got != got:
        return False
    return metric not in at.spreads and _by_formula(metric, got, at, _ANY_CONFIDENCE) is None


def not_sure(unsure: Sequence[tuple[str, str]]) -> list[str]:
    """Return notes on the metrics, each with a slice, that are judged without bounds."""
    by_metric: dict[str, list[str]] = {}
    for metric, name in unsure:
        by_metric.setdefault(metric, []).append(name)
    return [
        f"{metric} is judged without the confidence asked for on {names[0]}"
        f"{f' and {len(names) - 1} more' if names[1:] else ''}: the evaluation holds no bounds of it there"
        for metric, names in by_metric.items()
    ]


def _keys_of(name: str) -> tuple[str, ...]:
    return EVERY_SLICE, slice_columns(name), name


def _is_mean(metric: str, at: Measured) -> bool:
    """Return True if a metric is the mean of a metric over several outputs."""
    return at.labels is None and bool(at.labels_of_outputs) and not output_of(metric)


def _is_undefined(metric: str, at: Measured) -> bool:
    """Return True if the labels leave a metric without a meaning; for a mean, those of every output."""
    each = at.labels_of_outputs.values() if _is_mean(metric, at) else [at.labels]
    return all(labels is not None and _says_nothing(plain_name(metric), labels) for labels in each)


def _says_nothing(name: str, labels: LabelStatistics) -> bool:
    """Return True if a metric that separates two classes has labels of only one, or if a metric of ranks has
    no relevant row."""
    if name not in METRICS or labels.classes >= 2:
        return False
    if is_of_groups(name):
        return labels.majority == 0
    return METRICS[name].needs_both_classes


def _not_there(
    thresholds: Mapping[str, Mapping[str, Threshold]], slices: Mapping[str, Measured]
) -> list[str]:
    known = {key for name in slices for key in _keys_of(name)} | {EVERY_SLICE, OVERALL}
    return [f"no row of the eval split is in the slice {name}" for name in thresholds if name not in known]


def _checks(metric: str, limits: Threshold, name: str, at: Measured) -> list[Check]:
    got = at.metrics.get(metric)
    sure = "" if limits.confidence is None else f" with {100 * limits.confidence:g} % confidence"
    low, high = (got, got)
    if got is not None and limits.confidence is not None and got == got:
        low, high = bounds(metric, got, at, limits.confidence, at.spreads.get(metric))
    rules: list[tuple[str, bool, str]] = []
    # A comparison with NaN is False, so each rule is written to pass only if a comparison is True.
    if limits.min is not None:
        note = f"lower bound {low:.4g}" if sure and low is not None else ""
        rules.append((f"at least {limits.min:g}{sure}", low is not None and low >= limits.min, note))
    if limits.max is not None:
        note = f"upper bound {high:.4g}" if sure and high is not None else ""
        rules.append((f"at most {limits.max:g}{sure}", high is not None and high <= limits.max, note))
    rules += _against_baseline(metric, limits, name, at)
    return [
        Check(
            metric=metric,
            slice=name,
            required=required,
            got=got,
            baseline=at.baseline.get(metric),
            passed=passed,
            note=note,
        )
        for required, passed, note in rules
    ]


def _against_baseline(metric: str, limits: Threshold, name: str, at: Measured) -> list[tuple[str, bool, str]]:
    allowed = limits.max_drop if limits.max_drop is not None else limits.max_rise
    if allowed is None:
        return []
    falls = limits.max_drop is not None
    got, baseline = at.metrics.get(metric), at.baseline.get(metric)
    if baseline is None:
        # On a first run, or in a new slice, there is nothing to compare with.
        if got is not None and (not at.baseline or name != OVERALL):
            return []
        side = "below" if falls else "above"
        return [(f"at most {allowed:g} {side} the baseline, whose value is unknown", False, "")]
    limit = baseline - allowed if falls else baseline + allowed
    word, sign = ("at least", "less") if falls else ("at most", "plus")
    required = f"{word} {limit:.4g} (baseline {baseline:.4g} {sign} {allowed:g})"
    if got is None or got != got:
        return [(required, False, "")]
    if limits.confidence is None:
        return [(required, got >= limit if falls else got <= limit, "")]
    low, high = difference_bounds(metric, at, limits.confidence)
    worse_by = -high if falls else low
    note = f"beyond chance: worse by at least {worse_by:.4g}"
    return [(f"{required}, allowing for chance, {100 * limits.confidence:g} %", worse_by <= allowed, note)]
