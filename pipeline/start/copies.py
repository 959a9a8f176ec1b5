"""Finds columns that are the label in other words, also in tables too small for a score. Pure."""

from collections.abc import Mapping

import numpy as np

from slipway.components.data_profile.columns import Column, are_classes, categories, is_missing

# Fewer rows, or fewer of the rarer classes, may agree by chance; and if no class recurs, any ids do.
_LEAST_ROWS, _LEAST_RARER = 20, 5
# The share of its variance that a straight line may leave of a label in another unit, as it may be rounded.
_ROUNDED = 1e-6
# The rows to try first, which nearly always suffice to tell that a column is none.
_FIRST_ROWS = 1_000


def copies_of(label: str, columns: Mapping[str, Column]) -> list[str]:
    """Return the columns that are the label in other words, or in another unit.

    With classes, each value goes with one class and each class with one value, where an empty cell counts as
    a value. With numbers, all rows lie on a straight line.

    Args:
        columns: columns of equal length by name, the label among them.
    """
    known = ~is_missing(columns[label])
    target = columns[label][known]
    if len(target) < _LEAST_ROWS:
        return []
    others = {name: column[known] for name, column in columns.items() if name != label}
    if not are_classes(target):
        return [name for name, values in others.items() if _are_on_a_line(values, target)]
    codes = categories(target)
    rows = np.bincount(codes)
    if len(codes) - max(rows.max(), len(rows)) < _LEAST_RARER:
        return []
    return [
        name
        for name, values in others.items()
        if _is_one_to_one(values[:_FIRST_ROWS], codes[:_FIRST_ROWS]) and _is_one_to_one(values, codes)
    ]


def _is_one_to_one(values: Column, classes: Column) -> bool:
    codes = categories(values)
    pairs = np.unique(codes * (int(classes.max()) + 1) + classes)
    return len(pairs) == int(codes.max()) + 1 == len(np.unique(classes))


def _are_on_a_line(values: Column, target: Column) -> bool:
    if values.dtype == object or not (np.isfinite(values).all() and np.isfinite(target).all()):
        return False
    one, other = values - values.mean(), target - target.mean()
    spread = float((one @ one) * (other @ other))
    return spread > 0 and 1 - float(one @ other) ** 2 / spread < _ROUNDED
