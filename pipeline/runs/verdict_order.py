"""The order in which the screen and the page of a run list checks and slices: the worst first. Pure."""

import math
from collections.abc import Mapping, Sequence

from slipway.components.metrics.better_side import bounds_of_checks, is_lower_better
from slipway.pipeline.runs.record import VerdictCheck

SEVERITIES = ("FAILED", "warning", "passed")


def severity(check: VerdictCheck) -> int:
    """Return the severity of a check's result, as an index of `SEVERITIES`."""
    if check["passed"]:
        return 2
    return 0 if check.get("stops", True) else 1


def worst_first(
    slices: Mapping[str, Mapping[str, float]],
    metric: str,
    *,
    min_rows: int,
    checks: Sequence[VerdictCheck] = (),
) -> tuple[list[str], frozenset[str]]:
    """Sort slices, the worst first.

    Args:
        slices: slice -> metric -> value; the metrics include `example_count`.
        metric: the metric to sort by; slices without a value of it come after those with one.
        min_rows: slices with fewer rows come last: their values are largely due to chance, and the gate does
            not judge them (`evaluate.min_slice_rows`).
        checks: of the verdict; their thresholds say which side of a metric of one's own is better.

    Returns:
        The sorted names, and the names of the slices that are too small.
    """
    small = frozenset(name for name, each in slices.items() if each.get("example_count", math.inf) < min_rows)
    sign = -1 if is_lower_better(metric, bounds_of_checks(checks, metric)) else 1

    def place(name: str) -> tuple[bool, float]:
        value = slices[name].get(metric)
        return name in small, math.inf if value is None or math.isnan(value) else sign * value

    return sorted(slices, key=place), small
