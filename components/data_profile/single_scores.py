"""Scores how well each column alone predicts the label, on held-out rows. Pure."""

import functools
from collections.abc import Mapping

import numpy as np

from slipway.components.data_profile.columns import (
    Codes,
    Column,
    Floats,
    are_classes,
    binned,
    categories,
    is_missing,
)

_BINS = 32
# More rows do not make the score more accurate; with fewer, luck looks like a near-perfect score.
_MOST_ROWS, _LEAST_ROWS = 5_000, 100
_MOST_VALUES = 1_200_000
# The rows of the rarer classes that are needed to learn from, and as many again to hold out.
_LEAST_RARE = 10


def single_scores(sample: Mapping[str, Column], label: str) -> dict[str, float]:
    """Return how well each column alone predicts the label, 0 to 1; {} if too few rows have a label.

    Args:
        sample: columns of equal length by name, in the order of the files.
    """
    if label not in sample:
        return {}
    target = _thinned(sample[label], len(sample))
    known = ~is_missing(target)
    if known.sum() < _LEAST_ROWS:
        return {}
    wanted = target[known]
    if are_classes(wanted):
        score = functools.partial(_class_score, label=categories(wanted))
    elif (numbers := wanted.astype(np.float64)).min() < numbers.max():
        score = functools.partial(_number_score, label=numbers, label_ranks=_centred(_ranks(numbers)))
    else:
        return dict.fromkeys((name for name in sample if name != label), 0.0)
    return {
        name: score(_thinned(column, len(sample))[known]) for name, column in sample.items() if name != label
    }


def _thinned(column: Column, features: int) -> Column:
    rows = int(np.clip(_MOST_VALUES // max(features, 1), 4 * _LEAST_ROWS, _MOST_ROWS))
    return column[:: max(-(-len(column) // rows), 1)]


def _class_score(feature: Column, label: Codes) -> float:
    """Return the larger of two scores of a feature, 0 to 1.

    The first is the share by which it reduces the errors of always predicting the most frequent class.
    Predictions are learned on every other row and evaluated on the rest, so that a unique id per row scores
    0. Source: Goodman and Kruskal 1954, lambda. The second, for a numeric feature and two classes, is Gini's
    2 AUC - 1.
    """
    if int((label != np.bincount(label).argmax()).sum()) < 2 * _LEAST_RARE:
        return 0.0
    gini = _gini(feature, label) if feature.dtype != object and label.max() == 1 else 0.0
    codes = binned(feature, bins=_BINS)
    size = int(label.max()) + 1
    seen = np.bincount(codes[::2] * size + label[::2], minlength=(int(codes.max()) + 1) * size)
    table = seen.reshape(-1, size)
    usual = int(table.sum(axis=0).argmax())
    answers = np.where(table.sum(axis=1) > 0, table.argmax(axis=1), usual)
    wrong = int((answers[codes[1::2]] != label[1::2]).sum())
    always_wrong = int((label[1::2] != usual).sum())
    return max(1 - wrong / always_wrong if always_wrong else 0.0, gini)


def _gini(feature: Floats, label: Codes) -> float:
    """Return how well the order of the numbers separates the two classes, 0 to 1."""
    known = ~np.isnan(feature)
    values, classes = (feature, label) if known.all() else (feature[known], label[known])
    ones = int(classes.sum())
    if min(ones, len(classes) - ones) < _LEAST_RARE:
        return 0.0
    middle = float(_ranks(values)[classes == 1].sum()) - ones * (len(classes) - 1) / 2
    return min(abs(middle) * 2 / (ones * (len(classes) - ones)), 1.0)


def _number_score(feature: Column, label: Floats, label_ranks: Floats) -> float:
    """Return the larger of two shares of the label's variance that a feature explains, 0 to 1.

    The first is the square of the rank correlation (Spearman), which is 1 for any monotone copy of the label;
    the second is R squared of the mean label of the feature's bins, on held-out rows.
    """
    if feature.dtype == object:
        return _explained(categories(feature), label)
    ranks = _ranks(feature)  # NaN comes last
    known = ~np.isnan(feature)
    bins = (ranks * _BINS // max(len(feature), 1)).astype(np.int64)
    if known.all():
        return max(_explained(bins, label), _correlation(_centred(ranks), label_ranks) ** 2)
    explained = _explained(np.where(known, bins, _BINS), label)
    values, others = feature[known], label[known]
    if known.sum() < max(_LEAST_ROWS // 2, known.size // 2) or others.min() == others.max():
        return explained
    return max(explained, _correlation(_centred(_ranks(values)), _centred(_ranks(others))) ** 2)


def _explained(codes: Codes, label: Floats) -> float:
    """Return R squared of the mean label per bin or text, learned on every other row, tested on the rest.

    0 where the means answer worse than the mean of all labels.
    """
    sums = np.bincount(codes[::2], weights=label[::2], minlength=int(codes.max()) + 1)
    rows = np.bincount(codes[::2], minlength=len(sums))
    means = np.where(rows > 0, sums / np.maximum(rows, 1), label[::2].mean())
    aside = label[1::2]
    spread = float(((aside - aside.mean()) ** 2).sum())
    wrong = float(((aside - means[codes[1::2]]) ** 2).sum())
    return max(1 - wrong / spread, 0.0) if spread > 0 else 0.0


def _correlation(one: Floats, other: Floats) -> float:
    """Return the correlation of two columns with mean 0, from -1 to 1; 0 for a constant."""
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size else 0.0


def _ranks(values: Floats) -> Floats:
    """Return ranks from 0 to n - 1.

    Equal values share their mean rank, because the order of the rows may reveal the label.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    counts = np.diff(np.append(begins, len(values)))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(begins + (counts - 1) / 2, counts)
    return ranks


def _centred(ranks: Floats) -> Floats:
    return ranks - (len(ranks) - 1) / 2
