"""Measures how much of the label the other columns explain: if that drops, labels are wrong. Pure.

Flipped or shuffled labels leave every distribution unchanged, but break the relation to the other columns.
So that relation is measured on held-out rows, and compared with the reference's.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from slipway.components.data_profile.columns import (
    Codes,
    Column,
    Floats,
    are_classes,
    binned,
    categories,
    is_missing,
)

Matrix = npt.NDArray[np.float32]

# The most columns (the best predictors) and rows to use, and the least rows: 0.3 s for 15,000 rows of 18
# columns.
_MOST_COLUMNS, _MOST_ROWS, _LEAST_ROWS = 30, 20_000, 500
_MOST_CATEGORIES = 16
# Ridge penalty: acts like ten uninformative rows per category, so that rare categories are not memorised.
_PENALTY = 10.0


@dataclass(frozen=True, slots=True)
class LabelScore:
    """The score of how well the other columns explain the label.

    Attributes:
        score: the share of the label's variance that the other columns explain on held-out rows (R squared);
            1 is all, 0 or less is nothing.
        error: the score's standard error.
    """

    score: float
    error: float


def label_score(sample: Mapping[str, Column], label: str, single: Mapping[str, float]) -> LabelScore | None:
    """Explain the label by a ridge regression on the categories and bins of the other columns.

    Classes are one-hot encoded, and numbers are replaced by their ranks, since a few huge numbers would
    dominate the score. Each half of the rows is predicted by a model fitted to the other half.

    Args:
        sample: columns of equal length, by name.
        single: how well each column alone predicts the label, from `single_scores`; the best 30 are used.

    Returns:
        The score; None if there are fewer than 500 labelled rows, no other columns, or only one label value.
    """
    found = _explained(sample, label, single)
    if found is None:
        return None
    _, left, spread = found
    unexplained = float(left.sum() / spread.sum())
    # The standard error of a ratio of two means (delta method).
    influence = (left - unexplained * spread) / spread.mean()
    return LabelScore(1 - unexplained, float(influence.std() / math.sqrt(len(influence))))


def least_explained(sample: Mapping[str, Column], label: str, single: Mapping[str, float]) -> list[int]:
    """Return the five rows whose label is farthest from the other columns' prediction, the farthest first.

    Args:
        sample, label, single: as for `label_score`, which takes as long.

    Returns:
        The numbers of the rows in the sample; empty if `label_score` would return None.
    """
    found = _explained(sample, label, single)
    if found is None:
        return []
    rows, left, _ = found
    return [int(rows[index]) for index in np.argsort(-left, kind="stable")[:5]]


def _explained(
    sample: Mapping[str, Column], label: str, single: Mapping[str, float]
) -> tuple[Codes, Floats, Floats] | None:
    """Return the rows used, and for each the squared error of the prediction and that of the mean label."""
    columns = sorted(single, key=lambda name: -single[name])[:_MOST_COLUMNS]
    if label not in sample or not columns:
        return None
    step = -(-len(sample[label]) // _MOST_ROWS) or 1
    target = sample[label][::step]
    known = ~is_missing(target)
    if known.sum() < _LEAST_ROWS:
        return None
    wanted = _wanted(target[known])
    if float(wanted.std(axis=0).max()) == 0:
        return None
    given = np.concatenate([_one_hot(_bins(sample[name][::step][known])) for name in columns], axis=1)
    even, odd = slice(0, None, 2), slice(1, None, 2)
    left, spread = np.empty(len(wanted)), np.empty(len(wanted))
    for learn, ask in ((even, odd), (odd, even)):
        middle, answers = _fitted(given[learn], wanted[learn], given[ask])
        left[ask] = ((wanted[ask] - answers) ** 2).sum(axis=1)
        spread[ask] = ((wanted[ask] - middle) ** 2).sum(axis=1)
    return np.flatnonzero(known) * step, left, spread


def _wanted(label: Column) -> Matrix:
    if are_classes(label):
        return _one_hot(categories(label))  # in bins, a rare class would share that of its neighbour
    # Equal numbers share their mean rank.
    _, inverse, counts = np.unique(label, return_inverse=True, return_counts=True)
    ranks: Floats = np.cumsum(counts) - (counts + 1) / 2
    return (ranks[inverse] / len(label))[:, None].astype(np.float32)


def _bins(column: Column) -> Codes:
    return binned(column, bins=_MOST_CATEGORIES)


def _one_hot(codes: Codes) -> Matrix:
    """Encode codes as float32 [rows, categories]: the most frequent ones, and one for all others."""
    values, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    if len(values) > _MOST_CATEGORIES + 1:
        place = np.full(len(values), _MOST_CATEGORIES, dtype=np.int64)
        place[np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]] = np.arange(_MOST_CATEGORIES)
        inverse = place[inverse]
    return np.eye(int(inverse.max()) + 1, dtype=np.float32)[inverse]


def _fitted(given: Matrix, wanted: Matrix, asked: Matrix) -> tuple[Floats, Floats]:
    """Fit a ridge regression; return the mean of its targets, and its predictions for the rows of `asked`."""
    centre, middle = given.mean(axis=0), wanted.mean(axis=0)
    centred = given - centre
    product = centred.T @ centred + _PENALTY * np.eye(centred.shape[1], dtype=np.float32)
    weights = np.linalg.solve(product, centred.T @ (wanted - middle))
    return middle.astype(np.float64), ((asked - centre) @ weights + middle).astype(np.float64)
