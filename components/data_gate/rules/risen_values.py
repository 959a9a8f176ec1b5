"""Describes the values that became more frequent than in the reference, and the rows that hold them. Pure."""

import math
from collections.abc import Mapping

import numpy as np

from slipway.components.data_gate.finding import RowQuery, percent, plain, quoted, share
from slipway.components.data_gate.rules.distances import most_grown
from slipway.components.data_gate.statistics import FeatureStatistics


def grown_text(
    counts: Mapping[str, float], before: Mapping[str, float], sums: tuple[float, float] | None = None
) -> tuple[str, float, float]:
    """Return the text whose share grew most, and its share now and before, 0 to 1.

    Args:
        counts: the count of each text; not empty.
        before: the counts in the data compared with; not empty.
        sums: the number of all values of both; None: no value is missing in the counts.
    """
    now, then = sums or (sum(counts.values()), sum(before.values()))
    value = max(counts, key=lambda each: counts[each] / now - before.get(each, 0.0) / then)
    return value, counts[value] / now, before.get(value, 0.0) / then


def texts_moved(
    counts: Mapping[str, float],
    before: Mapping[str, float],
    moved: str,
    *,
    sums: tuple[float, float] | None = None,
    there: str,
    of: str,
) -> tuple[str, str]:
    """Describe the text whose share moved most, and return the text whose rows can be shown.

    Args:
        before: the counts in the data compared with.
        moved: the text whose share moved most, up or down.
        sums: the number of all values, now and in the data compared with; None: no value is missing in the
            counts.
        there: the data compared with, in words, e.g. `in the reference`.
        of: what is counted, e.g. `values`.

    Returns:
        The words, e.g. `"Cash" is 10 of 500 values (2%), 40% in the reference, "Card" rose from 30% to 70%`,
        and the text that rose most: a text that has disappeared has no rows to show.
    """
    whole, whole_before = sums or (sum(counts.values()), sum(before.values()))
    was = percent(before.get(moved, 0.0) / whole_before)
    words = f"{quoted([moved])} is {share(counts.get(moved, 0.0), whole, of)}, {was} {there}"
    value, now, then = grown_text(counts, before, sums)
    if value != moved:
        words += f", {quoted([value])} rose from {percent(then)} to {percent(now)}"
    return words, value


def numbers_moved(now: FeatureStatistics, then: FeatureStatistics, *, there: str) -> tuple[str, RowQuery]:
    """Describe the range of numbers whose share grew most; return the words and a query for its rows.

    Args:
        now: the feature; must have a distribution.
        then: the feature in the data compared with; must have a distribution.
        there: the data compared with, in words, e.g. `in the reference`.

    Raises:
        ValueError: either has no distribution.
    """
    if now.distribution is None or then.distribution is None:
        raise ValueError(f"{now.name} holds no numbers to compare")
    (low, high), (part, before) = most_grown(now.distribution, then.distribution)
    start = max(low, now.min)
    where = f"at {plain(high)}" if start >= high else f"from {plain(start)} to {plain(high)}"
    words = f"about {share(part * now.values, now.values, 'values')} lie {where}, {percent(before)} {there}"
    return words, RowQuery(now.name, within=(_bound(low, now), _bound(high, now)))


def _bound(number: float, feature: FeatureStatistics) -> float | None:
    """Return a bound for the numbers in the raw files: an Example holds fractions rounded to float32."""
    if math.isinf(number):
        return None
    return number if feature.kind == "int" else float(np.nextafter(np.float32(number), np.float32(np.inf)))
