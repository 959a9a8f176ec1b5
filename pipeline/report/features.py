"""Each column of the data in each split, as numbers and bars. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from slipway.components.data_gate.statistics import FeatureStatistics, Kind, SplitStatistics
from slipway.components.data_profile.columns import Floats

BINS = 12
"""The number of bars for a number with many values."""

_MOST_SINGLE_VALUES = 24  # a bar each for the hours of a day, the months, the weekdays, yes and no
_TAIL = 0.01
_LONG_TAIL = 4.0  # a range this many times that of the middle 98% would put nearly all values into one bar
_SHOWN_VALUES = 8
_KINDS: Mapping[Kind, str] = {"int": "integer", "float": "float", "text": "text", "other": "other"}


@dataclass(frozen=True)
class InSplit:
    """One feature in one split.

    Attributes:
        missing: share of the rows without a value, 0 to 1; None if there are no rows.
        distinct: how many values differ; None for numbers, which are not counted.
        numbers: smallest, mean and largest, in words; None for text.
        shares: of the values in each bin of the chart, or of each of its texts; 0 to 1.
    """

    split: str
    missing: float | None
    distinct: int | None
    numbers: tuple[str, ...] | None
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Feature:
    """One column.

    Attributes:
        kind: integer, float, text or other.
        labels: of the bars: the texts of a column of text, or the number or range that each counts.
        ends: below the first and the last bar of numbers, in words that differ; None for text.
        findings: how many the gate has about it.
    """

    name: str
    kind: str
    splits: tuple[InSplit, ...]
    labels: tuple[str, ...]
    ends: tuple[str, str] | None
    findings: int

    @property
    def most(self) -> float:
        """The largest share, more than 0, for the scale of its chart."""
        return max((share for found in self.splits for share in found.shares), default=0.0) or 1.0

    @property
    def has_chart(self) -> bool:
        """Whether there is anything to draw."""
        return any(share > 0 for found in self.splits for share in found.shares)


@dataclass(frozen=True)
class Bins:
    """The bins of a number, the same for all splits.

    Attributes:
        edges: float64 [bins + 1], ascending; a bin holds what is above its lower and at most its upper edge.
    """

    edges: Floats
    labels: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, str]:
        """The labels below the first and the last bar."""
        first, last = self.labels[0], self.labels[-1]
        return first.split(" to ")[0], last.split(" to ")[-1]

    def shares(self, found: FeatureStatistics) -> tuple[float, ...]:
        """The share of the values in each bin, as exact as the quantiles that StatisticsGen keeps (1%)."""
        if found.distribution is None:
            return (0.0,) * len(self.labels)
        below = found.distribution.at_most(self.edges)
        # The smallest value of all lies on the first edge, and belongs to the first bin.
        below[0] = 0.0
        return tuple(float(share) for share in np.diff(below))


def features(splits: Mapping[str, SplitStatistics], *, findings: Iterable[str] = ()) -> list[Feature]:
    """Each feature of the statistics, those with findings of the gate first.

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
    numbers = [each for each in found.values() if each.distribution is not None]
    if numbers:
        bins = bins_of(numbers)
        splits = tuple(_numbers_in_split(split, each, bins) for split, each in found.items())
        return Feature(name, kind, splits, bins.labels, bins.ends, findings)
    labels = _texts(list(found.values()))
    splits = tuple(_texts_in_split(split, each, labels) for split, each in found.items())
    return Feature(name, kind, splits, labels, None, findings)


def _numbers_in_split(split: str, found: FeatureStatistics, bins: Bins) -> InSplit:
    known = number_words((found.min, found.mean, found.max)) if found.present else None
    return InSplit(split, _missing(found), None, known, bins.shares(found))


def _texts_in_split(split: str, found: FeatureStatistics, labels: Sequence[str]) -> InSplit:
    counts, present = found.counts, found.present
    shares = tuple(counts.get(label, 0.0) / present if present else 0.0 for label in labels)
    return InSplit(split, _missing(found), found.unique if found.kind == "text" else None, None, shares)


def _missing(found: FeatureStatistics) -> float | None:
    return found.missing_share if found.rows else None


def _texts(found: Sequence[FeatureStatistics]) -> tuple[str, ...]:
    """The most frequent texts of the first split, then those that only other splits have."""
    labels = dict.fromkeys(label for each in found for label in each.counts)
    return tuple(labels)[:_SHOWN_VALUES]


def bins_of(numbers: Sequence[FeatureStatistics]) -> Bins:
    """The bins of a number: each whole number if there are few, else equal ranges from minimum to maximum.

    Whole numbers never share a bin with half of their neighbour: the edges lie between them.

    Args:
        numbers: the feature in each split; all have a distribution.
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
    """The range of the bars: minimum and maximum, or the quantiles at 1% and 99% if a tail is long."""
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
    """Labels the first and the last bin as open: they also count the values beyond them."""
    labels = [first if first == last else f"{first} to {last}" for first, last in ranges]
    if low < edges[0]:
        edges[0], labels[0] = low, f"{ranges[0][1]} and less"
    if high > edges[-1]:
        edges[-1], labels[-1] = high, f"{ranges[-1][0]} and more"
    return Bins(edges, tuple(labels))


def _is_whole(found: FeatureStatistics) -> bool:
    """Whether all its known values are whole, and small enough for bin edges halfway between them."""
    if found.distribution is None or max(abs(found.min), abs(found.max)) > 2**51:
        return False
    return bool((np.mod(found.distribution.points, 1) == 0).all())


def number_words(values: Sequence[float]) -> tuple[str, ...]:
    """Numbers with as few digits, four or more, as distinguish a hundredth of the range between them."""
    if len(set(values)) == 1:
        return (f"{values[0]:.10g}",) * len(values)
    largest = max(abs(value) for value in values)
    span = max(values) - min(values)
    digits = math.ceil(math.log10(largest / span)) + 3 if span > 0 and math.isfinite(span) else 4
    return tuple(f"{value:.{min(max(digits, 4), 17)}g}" for value in values)
