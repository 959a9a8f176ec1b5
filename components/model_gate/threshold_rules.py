"""Checks the measurements against the workload's thresholds. Pure: it takes numbers and returns checks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipway.components.metrics.definitions import output_of
from slipway.components.model_gate.measured import Measured, is_empty, is_undefined
from slipway.components.model_gate.metric_bounds import bounds, difference_bounds, is_unbounded
from slipway.components.model_gate.slice_names import slice_columns
from slipway.components.model_gate.verdict import OVERALL, Check
from slipway.components.setting_fields import setting

# In floating point, 0.8 less 0.1 is more than 0.7.
_ROUNDING = 1e-12
EVERY_SLICE = "all"
"""The key of `evaluate.slice_thresholds` that stands for every slice."""


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


def threshold_checks(
    thresholds: Mapping[str, Mapping[str, Threshold]],
    slices: Mapping[str, Measured],
    *,
    min_slice_rows: int,
) -> tuple[list[Check], list[str]]:
    """Check every slice that has limits.

    A metric that has a limit but no value, or a value that is NaN, fails: the gate never passes what it could
    not see. Without any baseline a drop or a rise cannot be checked and does not fail; with a baseline that
    lacks the metric overall it fails. A slice that the baseline did not have is not compared. A name of no
    slice that the data has is a warning, as slices without enough rows are not judged either.

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
        keys = _keys_of(name, slices[name])
        wanted = [(m, limits) for key in keys for m, limits in thresholds.get(key, {}).items()]
        if wanted and slices[name].rows < min_slice_rows:
            small += 1
            continue
        for metric, limits in wanted:
            at = slices[name].of_output(output_of(metric))
            if is_empty(metric, slices[name], overall=overall):
                notes.append(
                    f"{metric} is not judged on {name}: no row there has a label and a weight above 0"
                )
            elif is_undefined(metric, at):
                notes.append(f"{metric} is not judged on {name}: all its labels are equal")
            else:
                judged.append((metric, limits, name, at))
    if small:
        kept = "slice is" if small == 1 else "slices are"
        notes.append(f"{small} {kept} not judged: fewer than {min_slice_rows} rows (evaluate.min_slice_rows)")
    checks = [check for each in judged for check in _checks(*each)]
    unsure = [(metric, name) for metric, limits, name, at in judged if _lacks_bounds(metric, limits, at)]
    return checks + _not_there(thresholds, slices), notes + not_sure(unsure)


def _lacks_bounds(metric: str, limits: Threshold, at: Measured) -> bool:
    """Return True if limits have a confidence but the metric has no bounds."""
    if limits.confidence is None:
        return False
    of_value = limits.min is not None or limits.max is not None
    of_difference = limits.max_drop is not None or limits.max_rise is not None
    is_compared = of_difference and at.baseline.get(metric) is not None
    return (of_value or (is_compared and metric not in at.difference_spreads)) and is_unbounded(metric, at)


def not_sure(unsure: Sequence[tuple[str, str]]) -> list[str]:
    """Return notes on the metrics, each with a slice, that are judged without bounds."""
    by_metric: dict[str, list[str]] = {}
    for metric, name in unsure:
        by_metric.setdefault(metric, []).append(name)
    return [
        f"{metric} is judged without the confidence asked for on {names[0]}"
        f"{f' and {len(names) - 1} more' if names[1:] else ''}: the evaluation has no bounds for it there"
        for metric, names in by_metric.items()
    ]


def _keys_of(name: str, at: Measured) -> tuple[str, ...]:
    return EVERY_SLICE, at.columns or slice_columns(name), name


def _not_there(
    thresholds: Mapping[str, Mapping[str, Threshold]], slices: Mapping[str, Measured]
) -> list[Check]:
    """Return a warning for each name that is no slice's: it may be misspelt, or its rows may be gone."""
    known = {key for name, at in slices.items() for key in _keys_of(name, at)} | {EVERY_SLICE, OVERALL}
    return [
        Check(
            metric=f"slice {name}",
            slice="",
            required="one, or its limits judge nothing",
            stops=False,
            found="has no row in the eval split",
            note="check its name, and the data; or take it out of evaluate.slice_thresholds",
        )
        for name in thresholds
        if name not in known
    ]


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
    if limits.confidence is None or math.isinf(baseline):  # which no chance makes finite
        passed = (got >= limit if falls else got <= limit) or math.isclose(got, limit, rel_tol=_ROUNDING)
        return [(required, passed, "")]
    low, high = difference_bounds(metric, at, limits.confidence)
    worse_by = -high if falls else low
    note = f"beyond chance: worse by at least {worse_by:.4g}"
    return [(f"{required}, allowing for chance, {100 * limits.confidence:g} %", worse_by <= allowed, note)]
