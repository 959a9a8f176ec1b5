"""Each column of the data in each split, as numbers and bars. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorflow_metadata.proto.v0 import statistics_pb2

BINS = 12
_SHOWN_VALUES = 8
_KINDS = {
    statistics_pb2.FeatureNameStatistics.INT: "integer",
    statistics_pb2.FeatureNameStatistics.FLOAT: "float",
    statistics_pb2.FeatureNameStatistics.STRING: "text",
    statistics_pb2.FeatureNameStatistics.BYTES: "bytes",
    statistics_pb2.FeatureNameStatistics.STRUCT: "struct",
}


@dataclass(frozen=True)
class InSplit:
    """One feature in one split.

    Attributes:
        split: its name.
        missing: share of the rows without a value, 0 to 1; None where there are no rows.
        distinct: how many values differ; None for numbers, of which nobody counts that.
        numbers: `(min, mean, max)`; None for text.
        shares: of the values in each bin of the chart, or of each of its texts; 0 to 1.
    """

    split: str
    missing: float | None
    distinct: int | None
    numbers: tuple[float, float, float] | None
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Feature:
    """One column.

    Attributes:
        name: its name.
        kind: integer, float, text, bytes or struct.
        splits: what it is in each.
        labels: of the bins: the texts of a column of text, the lower edges of numbers, in words.
        edges: `(low, high)` of the chart of numbers; None for text.
        findings: how many the gate has about it.
    """

    name: str
    kind: str
    splits: tuple[InSplit, ...]
    labels: tuple[str, ...]
    edges: tuple[float, float] | None
    findings: int

    @property
    def most(self) -> float:
        """The largest share, more than 0, for the scale of its chart."""
        return max((share for found in self.splits for share in found.shares), default=0.0) or 1.0

    @property
    def has_chart(self) -> bool:
        """Whether there is anything to draw."""
        return any(share > 0 for found in self.splits for share in found.shares)


def features(splits: Mapping[str, Any], *, findings: Iterable[str] = ()) -> list[Feature]:
    """Each feature of the statistics, those that the gate found something about first.

    Args:
        splits: split -> its `DatasetFeatureStatistics`.
        findings: the feature of each finding.
    """
    counts: dict[str, int] = {}
    for name in findings:
        counts[name] = counts.get(name, 0) + 1
    by_name: dict[str, dict[str, Any]] = {}
    for split, statistics in splits.items():
        for message in statistics.features:
            by_name.setdefault(_name(message), {})[split] = (message, int(statistics.num_examples))
    made = [_feature(name, found, counts.get(name, 0)) for name, found in by_name.items()]
    return sorted(made, key=lambda feature: (-feature.findings, feature.name))


def _name(message: Any) -> str:
    return ".".join(message.path.step) or str(message.name)


def _feature(name: str, found: Mapping[str, tuple[Any, int]], findings: int) -> Feature:
    messages = [message for message, _ in found.values()]
    numbers = [m.num_stats for m in messages if m.WhichOneof("stats") == "num_stats"]
    edges = _edges(numbers)
    labels = tuple(f"{value:.4g}" for value in _lower_edges(edges)) if edges else _texts(messages)
    splits = tuple(_in_split(split, *each, edges, labels) for split, each in found.items())
    return Feature(name, _KINDS.get(messages[0].type, "other"), splits, labels, edges, findings)


def _in_split(
    split: str, message: Any, rows: int, edges: tuple[float, float] | None, labels: Sequence[str]
) -> InSplit:
    kind = message.WhichOneof("stats")
    stats: Any = getattr(message, kind) if kind else None
    common = getattr(stats, "common_stats", None)
    # A row may have the column and no value in it: Ingest writes an empty cell so.
    present = min(common.num_non_missing, common.tot_num_values) if common else 0
    missing = 1 - present / rows if rows else None
    if kind == "num_stats":
        known = (stats.min, stats.mean, stats.max) if present else None
        return InSplit(split, missing, None, known, _binned(stats, edges))
    counts = _counts(message)
    shares = tuple(counts.get(label, 0.0) / present if present else 0.0 for label in labels)
    distinct = int(stats.unique) if kind == "string_stats" else None
    return InSplit(split, missing, distinct, None, shares)


def _counts(message: Any) -> dict[str, float]:
    stats = message.string_stats if message.WhichOneof("stats") == "string_stats" else None
    return {bucket.label: bucket.sample_count for bucket in stats.rank_histogram.buckets} if stats else {}


def _texts(messages: Sequence[Any]) -> tuple[str, ...]:
    """The most frequent texts of the first split, then those that only others know."""
    labels = dict.fromkeys(label for message in messages for label in _counts(message))
    return tuple(labels)[:_SHOWN_VALUES]


def _edges(numbers: Sequence[Any]) -> tuple[float, float] | None:
    lows = [s.min for s in numbers if s.common_stats.tot_num_values and math.isfinite(s.min)]
    highs = [s.max for s in numbers if s.common_stats.tot_num_values and math.isfinite(s.max)]
    return (min(lows), max(highs)) if lows and highs else None


def _lower_edges(edges: tuple[float, float]) -> list[float]:
    low, high = edges
    return [low + (high - low) * index / BINS for index in range(BINS)]


def _binned(stats: Any, edges: tuple[float, float] | None) -> tuple[float, ...]:
    histograms = [h for h in stats.histograms if h.type == statistics_pb2.Histogram.STANDARD]
    if edges is None or not histograms:
        return ()
    buckets = [(b.low_value, b.high_value, b.sample_count) for b in histograms[0].buckets]
    return rebin(buckets, edges)


def rebin(buckets: Iterable[tuple[float, float, float]], edges: tuple[float, float]) -> tuple[float, ...]:
    """The shares of a histogram in `BINS` bins of equal width, so that two splits have the same bins.

    Within a bucket the values are taken as evenly spread.

    Args:
        buckets: low, high, count.
        edges: low and high of all bins.

    Returns:
        One share a bin, 0 to 1; they add up to 1 where there is anything.
    """
    low, high = edges
    width = (high - low) / BINS or 1.0
    sums = [0.0] * BINS
    for start, end, count in buckets:
        if not (count > 0 and math.isfinite(start) and math.isfinite(end)):
            continue
        first, last = (min(max(int((at - low) / width), 0), BINS - 1) for at in (start, end))
        for index in range(first, last + 1):
            overlap = min(end, low + width * (index + 1)) - max(start, low + width * index)
            sums[index] += count * (overlap / (end - start) if end > start else 1.0)
    total = sum(sums)
    return tuple(value / total for value in sums) if total else tuple(sums)
