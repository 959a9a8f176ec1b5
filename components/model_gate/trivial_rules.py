"""Checks that the model beats a constant answer, and that the thresholds test something. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from slipway.components.metrics.definitions import metric_of, output_of
from slipway.components.model_gate.interval_formulas import auc_of_chance
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.metric_bounds import bounds, is_unbounded
from slipway.components.model_gate.threshold_rules import Threshold, not_sure
from slipway.components.model_gate.trivial_scores import (
    LabelStatistics,
    class_name,
    majority_per_slice,
    trivial_answer,
    trivial_value,
)
from slipway.components.model_gate.verdict import OVERALL, Check

CONFIDENCE = 0.95
"""The confidence with which a model must beat a trivial one."""

# If the majority's share is higher, accuracy hardly separates a good model from a constant one.
_SKEWED_SHARE = 0.95
# Metrics are computed from sums of 32-bit numbers.
_ROUNDING = 1e-6

BeatTrivial = Literal["one", "all", "none"]
ClassNames = Mapping[str, Sequence[str]]
NO_NAMES: ClassNames = MappingProxyType({})


def checks_of_outputs(
    metrics: Sequence[str],
    thresholds: Mapping[str, Threshold],
    overall: Measured,
    *,
    beat: BeatTrivial,
    classes: ClassNames = NO_NAMES,
) -> tuple[list[Check], list[str]]:
    """Run `trivial_checks` on each output by itself: every output must beat a constant answer.

    Args:
        classes: names of the labels by output, in the order of their numbers; the only output is "".
    """
    checks: list[Check] = []
    notes: list[str] = []
    for output in overall.labels_of_outputs or ("",):
        found, more = trivial_checks(
            [name for name in metrics if output_of(name) == output],
            {name: limits for name, limits in thresholds.items() if output_of(name) == output},
            overall.of_output(output),
            beat=beat,
            classes=classes.get(output, ()),
        )
        checks += [
            replace(check, metric=f"{output} label") if check.metric == "label" and output else check
            for check in found
        ]
        notes += [f"{output}: {note}" if output else note for note in more]
    return checks, notes


def trivial_checks(
    metrics: Sequence[str],
    thresholds: Mapping[str, Threshold],
    overall: Measured,
    *,
    beat: BeatTrivial,
    classes: Sequence[str] = (),
) -> tuple[list[Check], list[str]]:
    """Compare the candidate with the best constant answer, metric by metric.

    Args:
        metrics: names in `metrics.METRICS`.
        beat: `one`: the model must surely be better in at least one of the metrics whose trivial value is
            known, and worse in none; `all`: surely better in each; `none`: failures are only warnings.
        classes: names of the labels, in the order of their numbers; (): they have no names.

    Returns:
        The checks and notes. If no trivial value is known, there is a note and no check.
    """
    labels = overall.labels
    if labels is None:
        return [], ["the labels' statistics are not known, so nothing was compared with a trivial model"]
    if labels.classes < 2:
        only = f"is always {class_name(labels.majority, classes)}"
        note = "the eval split says nothing about a model; check data.split and transform.label"
        return [Check("label", OVERALL, "more than one value", found=only, note=note)], []
    found = [check for name in metrics if (check := _beats(name, overall, labels, classes))]
    checks = [
        check
        for name, limits in thresholds.items()
        for check in _means_something(name, limits, labels, classes)
    ]
    checks += _accuracy_says_little(metrics, overall, labels, classes)
    if not found:
        return checks, ["none of evaluate.metrics has a known trivial value to compare with"]
    notes = _of_both_classes(metrics, labels)
    enough = any(check.passed for check in found) if beat == "one" else all(check.passed for check in found)
    return [
        replace(check, stops=beat != "none" and (not enough or _is_worse(check, labels))) for check in found
    ] + checks, notes + not_sure(
        [(check.metric, OVERALL) for check in found if is_unbounded(check.metric, overall)]
    )


def _of_both_classes(metrics: Sequence[str], labels: LabelStatistics) -> list[str]:
    """Return what to tell of an area or the like that is not that of one class, as of a softmax over two."""
    names = [name for name in metrics if metric_of(name).is_of_each_class]
    if not names or labels.constant_auc is None or labels.classes != 2 or labels.entries is not None:
        return []
    return [
        f"{', '.join(names)}: of both classes together, each a yes or no of its own, since the model answers "
        "two numbers a row; to measure the second class alone, let it answer one, with a sigmoid"
    ]


def trivial_document(
    metrics: Sequence[str], slices: Mapping[str, Measured], classes: ClassNames = NO_NAMES
) -> Mapping[str, object]:
    """Return all trivial values, overall (metric -> trivial model -> value) and by slice, for the verdict.

    Args:
        classes: as in `checks_of_outputs`.
    """
    found: dict[str, dict[str, dict[str, float | None]]] = {"overall": {}, "slices": {}}
    overall = slices.get(OVERALL, Measured({}, {}, None))
    for output in overall.labels_of_outputs or ("",):
        names = [name for name in metrics if output_of(name) == output]
        _add_trivial(found, names, slices, output, classes.get(output, ()))
    return found if found["overall"] or overall.labels or overall.labels_of_outputs else {}


def _add_trivial(
    found: dict[str, dict[str, dict[str, float | None]]],
    metrics: Sequence[str],
    slices: Mapping[str, Measured],
    output: str,
    classes: Sequence[str],
) -> None:
    labels = {name: each for name, at in slices.items() if (each := at.of_output(output).labels) is not None}
    overall = labels.get(OVERALL)
    if overall is None:
        return
    for name in metrics:
        value = trivial_value(name, overall)
        if value is None:
            continue
        found["overall"][name] = {trivial_answer(name, overall, classes): value}
        if metric_of(name).trivial == "majority_share":
            by_column = majority_per_slice(labels, name)
            found["overall"][name] |= {f"the majority of each {c}": share for c, share in by_column.items()}
        found["slices"][name] = {
            key: trivial_value(name, each) for key, each in labels.items() if key != OVERALL
        }


def _is_worse(check: Check, labels: LabelStatistics) -> bool:
    """Return True if a metric of the model is on the wrong side of the best constant answer's."""
    value = trivial_value(check.metric, labels)
    if value is None or check.got is None or math.isclose(check.got, value, rel_tol=_ROUNDING):
        return False
    return metric_of(check.metric).is_better(value, than=check.got)


def _beats(name: str, at: Measured, labels: LabelStatistics, classes: Sequence[str]) -> Check | None:
    value = trivial_value(name, labels)
    if value is None:
        return None
    metric, got = metric_of(name), at.metrics.get(name)
    answer = trivial_answer(name, labels, classes)
    if metric.interval == "auc" and labels.has_area_of_two_classes:
        limit = auc_of_chance(*labels.rows_by_class, confidence=CONFIDENCE)
        required = f"above {limit:.4g}, which {CONFIDENCE:.0%} of random models stay below"
        return Check(name, OVERALL, required, got, None, got is not None and got > limit)
    low = high = got
    if got is not None and got == got:
        low, high = bounds(name, got, at, CONFIDENCE, at.spreads.get(name))
    side, end, bound = ("above", "lower", low) if metric.better == "higher" else ("below", "upper", high)
    is_equal = got is not None and math.isclose(got, value, rel_tol=_ROUNDING)
    passed = bound is not None and not is_equal and metric.is_better(bound, than=value)
    note = ""
    required = f"{side} {value:.4g} ({answer})"
    if got is not None and not is_equal and metric.is_better(got, than=value) and not passed:
        # Without these words the row in the table of checks would contradict itself.
        required = f"{side} {value:.4g} by more than chance ({answer})"
        note = f"its {end} bound is {bound:.4g} with {at.rows_in_words}; more rows in the eval split help"
    elif got == 0 and metric.class_name == "Accuracy":
        note = "it counts answers that are equal to the label; of probabilities name binary_accuracy"
    return Check(name, OVERALL, required, got, None, passed, note=note)


def _accuracy_says_little(
    metrics: Sequence[str], overall: Measured, labels: LabelStatistics, classes: Sequence[str]
) -> list[Check]:
    """Return a finding if one class is so frequent that always answering it is nearly always right."""
    shares = [name for name in metrics if metric_of(name).trivial == "majority_share"]
    if not shares or labels.majority_share <= _SKEWED_SHARE:
        return []
    others = "auc, " if labels.is_binary and "auc" in metrics else ""
    majority = class_name(labels.majority, classes)
    if overall.has_weights:
        share = f"{labels.majority_share:.2%}, by weight, of {overall.rows_in_words}"
    else:
        share = f"{round(labels.majority_share * labels.rows):,} of {labels.rows:,.0f} rows"
    return [
        Check(
            metric="label",
            slice=OVERALL,
            required=f"at most {_SKEWED_SHARE:.0%} of one class, or {shares[0]} says little",
            stops=False,
            found=f"is {majority} in {share}",
            note=f"look at {others}precision and recall, which the report draws",
        )
    ]


def _means_something(
    name: str, limits: Threshold, labels: LabelStatistics, classes: Sequence[str]
) -> list[Check]:
    """Return a finding for each threshold that a constant answer would meet."""
    value = trivial_value(name, labels)
    if value is None:
        return []
    metric = metric_of(name)
    is_min = metric.better == "higher"
    key, side, limit = ("min", "above", limits.min) if is_min else ("max", "below", limits.max)
    if limit is None or metric.is_better(limit, than=value):
        return []
    return [
        Check(
            metric=f"threshold {name}.{key}",
            slice=OVERALL,
            required=f"{side} {value:.4g}",
            got=limit,
            stops=False,
            note=f"it tests nothing: {trivial_answer(name, labels, classes)} meets it",
        )
    ]
