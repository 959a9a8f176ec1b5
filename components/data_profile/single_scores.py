"""How well each column alone predicts the label, on rows kept aside. Pure."""

from collections.abc import Mapping

import numpy as np

from components.data_profile.columns import (
    Codes,
    Column,
    Floats,
    are_classes,
    binned,
    categories,
    is_missing,
)

_BINS = 32
# More rows make the score no truer; fewer cannot tell near-perfect from lucky.
_MOST_ROWS, _LEAST_ROWS = 5_000, 100
_MOST_VALUES = 1_200_000
# So many rows of the rarer classes are needed, and as many again to be kept aside.
_LEAST_RARE = 10


def single_scores(sample: Mapping[str, Column], label: str) -> dict[str, float]:
    """How well each column alone predicts the label, 0 to 1; empty where too few rows have one.

    Args:
        sample: columns of equal length by name, in the order of the files.
        label: the column to predict.
    """
    if label not in sample:
        return {}
    target = _thinned(sample[label], len(sample))
    known = ~is_missing(target)
    if known.sum() < _LEAST_ROWS:
        return {}
    classes = categories(target[known]) if are_classes(target[known]) else None
    numbers = None if classes is not None else target[known].astype(np.float64)
    found = {}
    for name, column in sample.items():
        if name != label:
            feature = _thinned(column, len(sample))[known]
            found[name] = (
                _class_score(feature, classes) if classes is not None else _number_score(feature, numbers)
            )
    return found


def _thinned(column: Column, features: int) -> Column:
    rows = int(np.clip(_MOST_VALUES // max(features, 1), 4 * _LEAST_ROWS, _MOST_ROWS))
    return column[:: max(-(-len(column) // rows), 1)]


def _equal_bins(feature: Floats) -> Codes:
    """Which of 32 bins of equally many rows each number falls into; missing values have their own."""
    ranks = np.empty(len(feature), dtype=np.int64)
    ranks[np.argsort(feature)] = np.arange(len(feature))  # NaN comes last
    return np.where(np.isnan(feature), _BINS, ranks * _BINS // max(len(feature), 1))


def _class_score(feature: Column, label: Codes) -> float:
    """The larger of two scores, 0 to 1.

    One is by how much it lowers the errors of always answering the most frequent class. The answers are
    learned on every other row and counted on the rest, so that a name for every row scores 0. Source: Goodman
    and Kruskal 1954, lambda. The other, for numbers and two classes, is Gini's 2 AUC - 1.
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
    """How well the order of the numbers tells the two classes apart, 0 to 1."""
    known = ~np.isnan(feature)
    values, classes = feature[known], label[known]
    ones = int(classes.sum())
    if min(ones, len(classes) - ones) < _LEAST_RARE or values.min() == values.max():
        return 0.0
    # Equal numbers count half: their ranks are averaged by taking the order from both ends.
    up, down = _centred_ranks(values), -_centred_ranks(-values)
    middle = float((up + down)[classes == 1].sum()) / 2
    return min(abs(middle) * 2 / (ones * (len(classes) - ones)), 1.0)


def _number_score(feature: Column, label: Floats | None) -> float:
    """The larger of two shares of the label's spread that it explains, 0 to 1.

    One is the square of the rank correlation (Spearman), which any monotone copy of the label has as 1; the
    other is R squared of the mean label of its bins, on rows kept aside.
    """
    if label is None or label.min() == label.max():
        return 0.0
    codes = categories(feature) if feature.dtype == object else _equal_bins(feature)
    sums = np.bincount(codes[::2], weights=label[::2], minlength=int(codes.max()) + 1)
    rows = np.bincount(codes[::2], minlength=len(sums))
    means = np.where(rows > 0, sums / np.maximum(rows, 1), label[::2].mean())
    aside = label[1::2]
    spread = float(((aside - aside.mean()) ** 2).sum())
    explained = 1 - float(((aside - means[codes[1::2]]) ** 2).sum()) / spread if spread > 0 else 0.0
    return max(explained, _rank_correlation(feature, label) ** 2)


def _rank_correlation(feature: Column, label: Floats) -> float:
    """Spearman's, of the rows that have a value; 0 where they are fewer than half."""
    if feature.dtype == object:
        return 0.0
    known = ~np.isnan(feature)
    if known.sum() < max(_LEAST_ROWS // 2, known.size // 2):
        return 0.0
    values = feature[known]
    if values.min() == values.max() or label[known].min() == label[known].max():
        return 0.0
    others = _centred_ranks(label[known])
    found = _correlation(_centred_ranks(values), others)
    # A falling copy breaks its ties the other way round.
    return found if found >= 0 else _correlation(_centred_ranks(-values), others)


def _correlation(ranks: Floats, others: Floats) -> float:
    return float(ranks @ others / (ranks @ ranks))  # both are the same numbers in another order


def _centred_ranks(values: Floats) -> Floats:
    """0 to n - 1, less their mean; equal values keep the order of the rows: a copy has the same ranks."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values)) - (len(values) - 1) / 2
    return ranks
