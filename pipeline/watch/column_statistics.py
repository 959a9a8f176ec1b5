"""The statistics of logged columns as the data gate's rules take them. Pure.

The training's are TFDV's: of numbers they keep the deciles only. A column of few different values, such as
the latitudes of city districts, is cut otherwise by the deciles of each sample of it, and two polylines
through them look as if they differed. So the requests, whose values are all there, are counted at the
training's own deciles.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.data_gate.statistics import Distribution, FeatureStatistics, SplitStatistics
from slipway.components.data_profile.columns import Floats

MOST_TEXTS = 1000
"""As many different texts of a column TFDV keeps, the most frequent ones."""
_DECILES = np.linspace(0, 1, 11)


def statistics_of(table: pa.Table) -> SplitStatistics:
    """The statistics of some rows, with their own deciles.

    Args:
        table: columns of one number or text in each row; null for none.
    """
    features = {name: _of_column(name, table[name]) for name in table.column_names}
    return SplitStatistics(rows=len(table), features=features)


def at_cuts_of(training: SplitStatistics, table: pa.Table, own: SplitStatistics) -> SplitStatistics:
    """The same statistics, with numbers counted at the training's deciles.

    Args:
        table: the rows.
        own: their `statistics_of`.
    """

    def cut(feature: FeatureStatistics) -> FeatureStatistics:
        then = training.features.get(feature.name)
        if feature.distribution is None or then is None or then.distribution is None:
            return feature
        values = np.sort(_numbers(table[feature.name]))
        return replace(feature, distribution=counted_at(then.distribution, values))

    features: Mapping[str, FeatureStatistics] = {name: cut(each) for name, each in own.features.items()}
    return replace(own, features=features)


def counted_at(then: Distribution, values: Floats) -> Distribution:
    """A distribution of values through the points of another one.

    At a value that many rows share, the other's share is known to lie somewhere in its step, and so is this
    one's: where the two steps allow for equal shares, they are equal.

    Args:
        values: ascending, finite, at least one.
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
    if not len(values):
        return base
    return replace(
        base,
        min=float(values.min()),
        max=float(values.max()),
        mean=float(values.mean()),
        distribution=Distribution(points=np.quantile(values, _DECILES), below=_DECILES),
    )


def _of_texts(name: str, column: pa.ChunkedArray) -> FeatureStatistics:
    counted = pc.value_counts(column.drop_null())
    counts = sorted(
        zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True),
        key=lambda pair: (-pair[1], pair[0]),
    )
    known = len(column) - column.null_count
    return FeatureStatistics(
        name=name,
        kind="text",
        rows=len(column),
        present=known,
        values=known,
        unique=len(counts),
        counts={text: float(count) for text, count in counts[:MOST_TEXTS]},
    )


def _numbers(column: pa.ChunkedArray) -> Floats:
    """The finite values of a column."""
    values: Floats = column.drop_null().to_numpy().astype(np.float64)
    return values[np.isfinite(values)]
