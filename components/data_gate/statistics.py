"""The statistics of a data set as plain numbers, for the rules. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from slipway.components.data_profile.columns import Floats

Kind = Literal["int", "float", "text", "other"]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A cumulative distribution, as the polyline through some of its points.

    Attributes:
        points: values, ascending; one that many rows share appears twice.
        below: share of the values at or below each point, 0 to 1, ascending.
    """

    points: Floats
    below: Floats

    def at_most(self, grid: Floats) -> Floats:
        """The share of the values that are at most each number of a grid: float64 [n] to float64 [n]."""
        # If a point appears twice, interp takes the latter, so equal values count as below.
        return np.interp(grid, self.points, self.below, left=0.0, right=1.0)

    def quantiles(self, shares: Floats) -> Floats:
        """The values below which those shares (0 to 1) of all values lie."""
        return np.interp(shares, self.below, self.points)


@dataclass(frozen=True, slots=True)
class FeatureStatistics:
    """One feature of one split.

    Attributes:
        kind: what its values are; `text` has `counts`, numbers have the rest.
        rows: those that were looked at; fewer than the split has where the statistics are of a sample.
        present: rows that have a value; one that is no number (NaN) is none.
        values: how many values there are; more than `present` where a row may have several.
        most_values: how many one row has at most; 0 where that is not known.
        unique: different values of a text.
        counts: text -> how often, the most frequent ones (TFDV keeps 1,000).
        distribution: of the numbers; None where there are none.
        is_sampled: whether the split has rows that were not looked at.
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
    distribution: Distribution | None = None
    is_sampled: bool = False
    most_values: int = 0

    @property
    def rows_in_words(self) -> str:
        """What its rows are called where they are counted."""
        return "rows looked at" if self.is_sampled else "rows"

    @property
    def missing(self) -> int:
        """Rows without a value."""
        return max(self.rows - self.present, 0)

    @property
    def missing_share(self) -> float:
        """Rows without a value, as a share of all, 0 to 1."""
        return self.missing / self.rows if self.rows else 0.0

    @property
    def is_number(self) -> bool:
        """Whether it has numbers that can be compared."""
        return self.distribution is not None


@dataclass(frozen=True, slots=True)
class SplitStatistics:
    """One split.

    Attributes:
        rows: how many it has, also those outside a sample.
        features: by name.
        sampled: how many rows were looked at, where these are drawn; None: all.
    """

    rows: int
    features: Mapping[str, FeatureStatistics]
    sampled: int | None = None


# By the name of the split: train, eval, ...
Statistics = Mapping[str, SplitStatistics]


def total_rows(statistics: Statistics) -> int:
    """The rows of all splits."""
    return sum(split.rows for split in statistics.values())
