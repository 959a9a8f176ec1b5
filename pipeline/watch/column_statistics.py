"""Computes statistics of logged columns, in the form of the data gate's rules. Pure.

The training data's statistics are TFDV's, which keep only the deciles of numbers. If a column has few
different values, such as the latitudes of city districts, each sample of it has different deciles, and two
distributions interpolated through them seem to differ. All values of the requests are available, so they are
counted at the deciles of the training data.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.data_gate.statistics import (
    NO_TEXT,
    Distribution,
    FeatureStatistics,
    SplitStatistics,
)
from slipway.components.data_profile.columns import Floats

MOST_TEXTS = 1000
"""The number of different texts of a column that TFDV keeps, the most frequent ones."""
_DECILES = np.linspace(0, 1, 11)


def statistics_of(table: pa.Table) -> SplitStatistics:
    """Return the statistics of rows, with the rows' own deciles.

    Args:
        table: columns with one number or text per row, or null.
    """
    features = {name: _of_column(name, table[name]) for name in table.column_names}
    return SplitStatistics(rows=len(table), features=features)


def at_cuts_of(training: SplitStatistics, table: pa.Table, own: SplitStatistics) -> SplitStatistics:
    """Return statistics in which numbers are counted at the deciles of the training data.

    Args:
        own: the rows' `statistics_of`.
    """

    def cut(feature: FeatureStatistics) -> FeatureStatistics:
        then = training.features.get(feature.name)
        if feature.distribution is None or then is None or then.distribution is None:
            return feature  # without a distribution, no number of it is finite
        values = np.sort(_numbers(table[feature.name]))
        return replace(feature, distribution=counted_at(then.distribution, values))

    features: Mapping[str, FeatureStatistics] = {name: cut(each) for name, each in own.features.items()}
    return replace(own, features=features)


def counted_at(then: Distribution, values: Floats) -> Distribution:
    """Return the distribution of values at the points of another distribution.

    At a value that many rows share, the cumulative distribution has a step, and the share below the point may
    be anywhere within it. If the steps of both distributions overlap, their shares are taken to be equal.

    Args:
        values: finite values in ascending order; at least one.
    """
    below = np.searchsorted(values, then.points, side="left") / len(values)
    upto = np.searchsorted(values, then.points, side="right") / len(values)
    shares = np.clip(then.below, below, upto)
    points = np.concatenate(
        [[min(values[0], then.points[0])], then.points, [max(values[-1], then.points[-1])]]
    )
    return Distribution(points=points, below=np.concatenate([[0.0], shares, [1.0]]))


def _of_column(name: str, column: pa.ChunkedArray) -> FeatureStatistics:
    if pa.types.is_string(column.type):
        return _of_texts(name, column)
    values = _numbers(column)
    known = len(column) - column.null_count
    base = FeatureStatistics(
        name=name,
        kind="int" if pa.types.is_integer(column.type) else "float",
        rows=len(column),
        present=len(values),
        values=known,
    )
    finite = values[np.isfinite(_as_written(column))]
    if not len(finite):
        return base
    return replace(
        base,
        min=float(values.min()),
        max=float(values.max()),
        mean=float(finite.mean()),
        distribution=Distribution(points=np.quantile(values, _DECILES), below=_DECILES),
    )


def _of_texts(name: str, column: pa.ChunkedArray) -> FeatureStatistics:
    texts = column.filter(pc.not_equal(column, NO_TEXT))  # which leaves out what is null, too
    counted = pc.value_counts(texts)
    counts = sorted(
        zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True),
        key=lambda pair: (-pair[1], pair[0]),
    )
    return FeatureStatistics(
        name=name,
        kind="text",
        rows=len(column),
        present=len(texts),
        values=len(texts),
        unique=len(counts),
        counts={text: float(count) for text, count in counts[:MOST_TEXTS]},
    )


def _numbers(column: pa.ChunkedArray) -> Floats:
    """Return the values of a column. Infinite ones count as the least and the greatest of the others, as in
    the training data's statistics; they are no missing values."""
    values = _as_written(column)
    finite = values[np.isfinite(values)]
    return np.clip(values, finite.min(), finite.max()) if 0 < len(finite) < len(values) else values


def _as_written(column: pa.ChunkedArray) -> Floats:
    """Return the values of a column without NaN, which is none."""
    values: Floats = column.drop_null().to_numpy().astype(np.float64)
    return values[~np.isnan(values)]
