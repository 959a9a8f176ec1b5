"""Confidence bounds of a slice's values and of their differences from the baseline. Pure.

The formulas and Student's t are in `interval_formulas.py`; the Evaluator measures the spreads, in
`evaluator/spreads.py`.
"""

import math

from slipway.components.metrics.definitions import METRICS, metric_of, output_of, plain_name
from slipway.components.model_gate.interval_formulas import (
    FEW_FREEDOM,
    Spread,
    auc_bounds,
    least_difference,
    proportion_bounds,
)
from slipway.components.model_gate.measured import Measured, is_mean

# Of each of the two bounds, for 95 % between them.
_TWO_SIDED = 0.975

# Whether there is a formula does not depend on it.
_ANY_CONFIDENCE = 0.95


def bounds(
    metric: str, value: float, at: Measured, confidence: float, spread: Spread | None = None
) -> tuple[float, float]:
    """The one-sided bounds of a value at that confidence.

    By formula where there is one, which holds for a perfect value and for few rows, too; else from the
    spread.

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
    """The one-sided bounds of the candidate's value less the baseline's, by the difference's own spread.

    Few rows may all say the same by chance, so for them each bound is the wider of that one and the one for
    two models judged on different rows, which also holds where no spread was measured.

    Args:
        metric: both have it.
        confidence: of each bound by itself, 0.5 to 1.
    """
    got, baseline = at.metrics[metric], at.baseline[metric]
    spread = at.difference_spreads.get(metric)
    if spread is not None:
        half = spread.half(confidence)
        on_same_rows = got - baseline - half, got - baseline + half
        if spread.degrees_of_freedom >= FEW_FREEDOM:
            return on_same_rows
    # On the same rows chance moves a baseline's value about as far as the candidate's.
    ours = (got, *bounds(metric, got, at, confidence, at.spreads.get(metric)))
    theirs = (baseline, *bounds(metric, baseline, at, confidence, at.spreads.get(metric)))
    on_others = least_difference(ours, theirs), -least_difference(theirs, ours)
    if spread is None:
        return on_others
    return min(on_same_rows[0], on_others[0]), max(on_same_rows[1], on_others[1])


def _by_formula(metric: str, value: float, at: Measured, confidence: float) -> tuple[float, float] | None:
    if is_mean(metric, at):
        return None  # the labels of a row may be correlated: only the measured spread knows
    kind = metric_of(metric).interval if plain_name(metric) in METRICS else None
    if kind == "proportion" and at.effective_rows > 0:
        return proportion_bounds(min(max(value, 0.0), 1.0), at.effective_rows, confidence=confidence)
    labels = at.labels
    if kind == "auc" and labels and labels.has_area_of_two_classes:
        return auc_bounds(value, *labels.rows_by_class, confidence=confidence)
    return None


def is_unbounded(metric: str, at: Measured) -> bool:
    """Whether a value is there, but neither a formula nor a spread for its bounds."""
    got = at.metrics.get(metric)
    if got is None or got != got:
        return False
    return metric not in at.spreads and _by_formula(metric, got, at, _ANY_CONFIDENCE) is None


def intervals(at: Measured) -> dict[str, tuple[float, float]]:
    """Return the lower and the upper bound of each value that has some, between which it lies in 95 of 100
    such evaluations."""
    found = {}
    for name, value in at.defined.items():
        of_output = at.of_output(output_of(name))
        if math.isfinite(value) and not is_unbounded(name, of_output):
            found[name] = bounds(name, value, of_output, _TWO_SIDED, at.spreads.get(name))
    return found
