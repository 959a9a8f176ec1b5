"""The statistics of a data set as plain numbers, for the rules. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from slipway.components.data_profile.columns import Floats
from slipway.components.iso_dates import ISO_DATE

Kind = Literal["int", "float", "text", "other"]

_is_date = re.compile(ISO_DATE).match


@dataclass(frozen=True, slots=True)
class Distribution:
    """A cumulative distribution, as the polyline through some of its points.

    Attributes:
        points: values, ascending; a value that many rows share appears twice.
        below: share of the values at or below each point, 0 to 1, ascending.
    """

    points: Floats
    below: Floats

    def at_most(self, grid: Floats) -> Floats:
        """Return the share of the values at or below each number of a grid: float64 [n] to float64 [n]."""
        # If a point appears twice, interp takes the latter, so equal values count as below.
        return np.interp(grid, self.points, self.below, left=0.0, right=1.0)

    def quantiles(self, shares: Floats) -> Floats:
        """Return the values below which the given shares (0 to 1) of all values lie."""
        return np.interp(shares, self.below, self.points)


@dataclass(frozen=True, slots=True)
class FeatureStatistics:
    """The statistics of one feature in one split.

    Attributes:
        kind: the kind of the values; `text` has `unique` and `counts`, numbers have the other statistics.
        rows: the number of rows examined; fewer than the split has if the statistics cover a sample.
        present: rows that have a value; NaN counts as no value, but in lists with another one.
        values: the number of values; more than `present` if rows hold several values.
        most_values: the largest number of values in one row; 0 if unknown.
        unique: the number of distinct texts.
        counts: the most frequent texts with their counts (TFDV keeps 1,000).
        std_dev: the standard deviation of the numbers; None if unknown.
        distribution: the distribution of the numbers; None if there are none.
        whole_counts: the count of each number, if all are whole and the least and the greatest at most nine
            apart, as those of classes often are; else empty. Each is right to about a thousandth of all.
        is_sampled: whether the split has rows that were not examined.
    """

    name: str
    kind: Kind
    rows: int
    present: int
    values: int = 0
    unique: int = 0
    counts: Mapping[str, float] = field(default_factory=dict)
    min: float = 0.0
    max: float = 0.0
    mean: float = 0.0
    std_dev: float | None = None
    distribution: Distribution | None = None
    whole_counts: Mapping[str, float] = field(default_factory=dict)
    is_sampled: bool = False
    most_values: int = 0

    @property
    def rows_in_words(self) -> str:
        """The words for the rows in a message that counts them."""
        return "rows looked at" if self.is_sampled else "rows"

    @property
    def missing(self) -> int:
        """The number of rows without a value."""
        return max(self.rows - self.present, 0)

    @property
    def missing_share(self) -> float:
        """The share of the rows without a value, 0 to 1."""
        return self.missing / self.rows if self.rows else 0.0

    @property
    def counted(self) -> float:
        """The number of values that a count in `counts` is a share of: all of them, rarer texts too."""
        return max(float(self.values), sum(self.counts.values()))

    @property
    def undated(self) -> dict[str, float]:
        """The most frequent texts that are neither ISO dates nor empty, with their counts."""
        return {text: count for text, count in self.counts.items() if text and not _is_date(text)}

    @property
    def holds_dates(self) -> bool:
        """Whether the texts are ISO dates, at most one a row: lists are no dates to the code of `new`."""
        return self.most_values <= 1 and any(self.counts) and all(map(_is_date, filter(None, self.counts)))

    @property
    def is_number(self) -> bool:
        """Whether the feature has numbers that can be compared."""
        return self.distribution is not None


@dataclass(frozen=True, slots=True)
class SplitStatistics:
    """The statistics of one split.

    Attributes:
        rows: the number of rows, including those outside a sample.
        sampled: the number of rows drawn and examined; None if all were examined.
    """

    rows: int
    features: Mapping[str, FeatureStatistics]
    sampled: int | None = None

    def holds_dates(self, name: str) -> bool:
        """Return True if all texts of a feature are ISO dates, at most one a row."""
        return name in self.features and self.features[name].holds_dates


NO_TEXT = ""
"""What an empty cell of a text is in a request, so that the log of requests may have no value for it."""


def without_empty_texts(split: SplitStatistics) -> SplitStatistics:
    """Return the statistics with empty texts as no value, to be compared with those of requests.

    Files of JSON Lines and Parquet hold empty texts, which are values there.
    """
    return replace(split, features={name: _without_empty(each) for name, each in split.features.items()})


def _without_empty(feature: FeatureStatistics) -> FeatureStatistics:
    empty = int(feature.counts.get(NO_TEXT, 0))
    if not empty or feature.most_values > 1:  # within lists, empty texts keep the others at their places
        return feature
    return replace(
        feature,
        present=max(feature.present - empty, 0),
        values=max(feature.values - empty, 0),
        unique=feature.unique - 1,
        counts={text: count for text, count in feature.counts.items() if text != NO_TEXT},
    )


# The key is the name of the split: train, eval, ...
Statistics = Mapping[str, SplitStatistics]


def total_rows(statistics: Statistics) -> int:
    """Return the number of rows in all splits."""
    return sum(split.rows for split in statistics.values())
