"""Summarizes each feature in each split as numbers and histogram bars. Pure.

The macro `bars` of `templates/data.html.j2` draws them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slipway.components.data_gate.statistics import FeatureStatistics, Kind, SplitStatistics
from slipway.components.data_profile.columns import Floats

BINS = 12
"""The number of bars of a numeric feature with many values."""

_MOST_SINGLE_VALUES = 24  # one bar each for hours of the day, months, weekdays, yes and no
_TAIL = 0.01
_LONG_TAIL = 4.0  # a range this many times that of the middle 98% would put nearly all values in one bar
_SHOWN_VALUES = 8
_KINDS: Mapping[Kind, str] = {"int": "integer", "float": "float", "text": "text", "other": "other"}


@dataclass(frozen=True)
class InSplit:
    """One feature in one split.

    Attributes:
        missing: share of the rows without a value, 0 to 1; None if there are no rows.
        distinct: the number of distinct texts; None for numbers, whose distinct values are not counted.
        numbers: (min, mean, max), as text; None for text.
        shares: share of the values in each bar of the chart, 0 to 1.
        lengths: mean and largest number of values of rows that have any, as text; "" if no row has several.
    """

    split: str
    missing: float | None
    distinct: int | None
    numbers: tuple[str, ...] | None
    shares: tuple[float, ...]
    lengths: str = ""


@dataclass(frozen=True)
class Feature:
    """One column.

    Attributes:
        kind: integer, float, text or other.
        labels: the labels of the bars: texts, or the number or range that each bar counts.
        ends: the axis labels below the first and the last bar of numbers; None for text.
        findings: the number of the data gate's findings about this feature.
    """

    name: str
    kind: str
    splits: tuple[InSplit, ...]
    labels: tuple[str, ...]
    ends: tuple[str, str] | None
    findings: int

    @property
    def most(self) -> float:
        """The largest share, for the scale of the chart; 1 if all shares are 0."""
        return max((share for found in self.splits for share in found.shares), default=0.0) or 1.0

    @property
    def has_chart(self) -> bool:
        """Whether any share is above 0, so that there is something to draw."""
        return any(share > 0 for found in self.splits for share in found.shares)

    @property
    def has_lists(self) -> bool:
        """Whether rows hold several values."""
        return any(found.lengths for found in self.splits)


@dataclass(frozen=True)
class Bins:
    """The histogram bins of a numeric feature, the same for all splits.

    Attributes:
        edges: float64 [bins + 1], ascending; bin i is the interval (edges[i], edges[i + 1]].
    """

    edges: Floats
    labels: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, str]:
        """The labels below the first and the last bar."""
        first, last = self.labels[0], self.labels[-1]
        return first.split(" to ")[0], last.split(" to ")[-1]

    def shares(self, found: FeatureStatistics) -> tuple[float, ...]:
        """Return the share of the values in each bin, as exact as StatisticsGen's quantiles (1%)."""
        if found.distribution is None:
            return (0.0,) * len(self.labels)
        below = found.distribution.at_most(self.edges)
        # The smallest value lies on the first edge, and belongs to the first bin.
        below[0] = 0.0
        return tuple(float(share) for share in np.diff(below))


def features(splits: Mapping[str, SplitStatistics], *, findings: Iterable[str] = ()) -> list[Feature]:
    """Return each feature of the statistics, features with findings of the data gate first.

    Args:
        findings: the feature of each finding.
    """
    counts: dict[str, int] = {}
    for name in findings:
        counts[name] = counts.get(name, 0) + 1
    by_name: dict[str, dict[str, FeatureStatistics]] = {}
    for split, statistics in splits.items():
        for name, found in statistics.features.items():
            by_name.setdefault(name, {})[split] = found
    made = [_feature(name, found, counts.get(name, 0)) for name, found in by_name.items()]
    return sorted(made, key=lambda feature: (-feature.findings, feature.name))


def _feature(name: str, found: Mapping[str, FeatureStatistics], findings: int) -> Feature:
    kind = _KINDS[next(iter(found.values())).kind]
    # Bars between infinite numbers would have no width.
    numbers = [each for each in found.values() if each.distribution and math.isfinite(each.max - each.min)]
    if numbers:
        bins = bins_of(numbers)
        splits = tuple(_numbers_in_split(split, each, bins) for split, each in found.items())
        return Feature(name, kind, splits, bins.labels, bins.ends, findings)
    labels = _texts(list(found.values()))
    splits = tuple(_texts_in_split(split, each, labels) for split, each in found.items())
    return Feature(name, kind, splits, labels, None, findings)


def _numbers_in_split(split: str, found: FeatureStatistics, bins: Bins) -> InSplit:
    if found.kind == "text":  # as in the reference, where the column had another type
        return InSplit(split, _missing(found), found.unique, None, bins.shares(found), _lengths(found))
    known = number_words((found.min, found.mean, found.max)) if found.present else None
    return InSplit(split, _missing(found), None, known, bins.shares(found), _lengths(found))


def _texts_in_split(split: str, found: FeatureStatistics, labels: Sequence[str]) -> InSplit:
    counts, counted = found.counts, found.counted  # of values: a row may hold several
    shares = tuple(counts.get(label, 0.0) / counted if counted else 0.0 for label in labels)
    distinct = found.unique if found.kind == "text" else None
    return InSplit(split, _missing(found), distinct, None, shares, _lengths(found))


def _lengths(found: FeatureStatistics) -> str:
    if found.most_values <= 1 or not found.present:
        return ""
    return f"{found.values / found.present:.3g}, at most {found.most_values:,}"


def _missing(found: FeatureStatistics) -> float | None:
    return found.missing_share if found.rows else None


def _texts(found: Sequence[FeatureStatistics]) -> tuple[str, ...]:
    """Return the most frequent texts of the first split, then texts that only other splits have."""
    labels = dict.fromkeys(label for each in found for label in each.counts)
    return tuple(labels)[:_SHOWN_VALUES]


def bins_of(numbers: Sequence[FeatureStatistics]) -> Bins:
    """Return the bins of a numeric feature: one per integer if there are few, else ranges of equal width.

    The inner edges for integers lie halfway between two of them, so that each bin holds whole integers only.

    Args:
        numbers: the feature's statistics in each split; all have a distribution.
    """
    low, high = min(each.min for each in numbers), max(each.max for each in numbers)
    if high <= low:
        return Bins(np.array([low, low]), (number_words([low])[0],))
    first, last = _without_tails(numbers, low, high)
    if not all(_is_whole(each) for each in numbers):
        edges = np.linspace(first, last, BINS + 1)
        between = list(pairwise(number_words([float(edge) for edge in edges])))
        return _open_ended(edges, between, low=low, high=high)
    low, high, least, most = math.floor(first), math.ceil(last), low, high
    values = high - low + 1
    width = 1 if values <= _MOST_SINGLE_VALUES else math.ceil(values / BINS)
    firsts = [low + width * index for index in range(math.ceil(values / width))]
    edges = np.array([first - 0.5 for first in [*firsts, firsts[-1] + width]])
    lasts = [min(first + width - 1, high) for first in firsts]
    ranges = list(zip(number_words(firsts), number_words(lasts), strict=True))
    return _open_ended(edges, ranges, low=least, high=most)


def _without_tails(numbers: Sequence[FeatureStatistics], low: float, high: float) -> tuple[float, float]:
    """Return the range of the bars: minimum and maximum, or the 1% or 99% quantile where a tail is long."""
    tails = [
        each.distribution.quantiles(np.array([_TAIL, 1 - _TAIL])) for each in numbers if each.distribution
    ]
    first, last = float(min(tail[0] for tail in tails)), float(max(tail[1] for tail in tails))
    spread = last - first
    if spread <= 0:
        return low, high
    return (
        first if first - low > _LONG_TAIL * spread else low,
        last if high - last > _LONG_TAIL * spread else high,
    )


def _open_ended(edges: Floats, ranges: list[tuple[str, str]], *, low: float, high: float) -> Bins:
    """Return the bins; where values lie beyond the range, the outer bins also count these ("or more")."""
    labels = [first if first == last else f"{first} to {last}" for first, last in ranges]
    if low < edges[0]:
        edges[0], labels[0] = low, f"{ranges[0][1]} or less"
    if high > edges[-1]:
        edges[-1], labels[-1] = high, f"{ranges[-1][0]} or more"
    return Bins(edges, tuple(labels))


def _is_whole(found: FeatureStatistics) -> bool:
    """Whether all known values are integers small enough to represent bin edges halfway between them."""
    if found.distribution is None or max(abs(found.min), abs(found.max)) > 2**51:
        return False
    return bool((np.mod(found.distribution.points, 1) == 0).all())


def number_words(values: Sequence[float]) -> tuple[str, ...]:
    """Format numbers with as few digits, at least four, as distinguish a hundredth of their range."""
    if len(set(values)) == 1:
        return (f"{values[0]:.10g}",) * len(values)
    largest = max(abs(value) for value in values)
    span = max(values) - min(values)
    digits = math.ceil(math.log10(largest / span)) + 3 if span > 0 and math.isfinite(span) else 4
    return tuple(f"{value:.{min(max(digits, 4), 17)}g}" for value in values)
