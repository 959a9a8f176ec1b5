"""Tells whole numbers that are codes, such as of products, from amounts, such as ages, by the label. Pure.

As categories, amounts lose their order, which is much of what a model can learn from a few thousand rows; as
numbers, codes get an order that means nothing. Names tell little, and codes leave no more gaps than ages do.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from slipway.components.data_profile.columns import Column, Floats, categories, is_missing
from slipway.pipeline.start.facts import Facts

FEW = 24
"""Up to so many values, such as the hours of a day, each can be learned by itself."""
_MOST = 100
# Means of fewer rows are too uncertain to compare, and fewer means are always on a line.
_LEAST_ROWS, _LEAST_VALUES = 10, 3
# Beyond so many standard deviations above what chance yields on average, a spread is no chance.
_SURE = 3.0
# Of what any two values differ by, neighbours among amounts differ by little, among codes by all.
_LIKE_ANY_TWO = 0.5
_ROUNDED = 1e-9
# Of the label's amounts, this share at each end does not say how far amounts usually reach.
_TAIL = 0.01


def columns_of_codes(
    facts: Sequence[Facts],
    columns: Mapping[str, Column],
    label: str,
    *,
    are_classes: bool,
    ids: Collection[str] = (),
) -> set[str]:
    """Return the columns of 2 to 100 different whole numbers that the label shows to be codes.

    Up to `FEW` numbers are codes if the label's means lie on no straight line, beyond chance; more are, if
    these means differ beyond chance, and between neighbours as between any two. Two numbers may be codes.

    What is the same in all rows of a person, such as the age, counts once for each: the label's means at the
    ages would else differ by what the few persons of each age are like.

    Args:
        columns: by name, [rows]; at least the label and all columns of whole numbers.
        are_classes: whether the label holds classes; its mean is the share of each then.
        ids: columns that identify persons, or the like, of a few rows each.
    """
    known = ~is_missing(columns[label])
    answers = _answers(columns[label][known], are_classes=are_classes)
    groups = [_Groups(columns[each][known]) for each in ids if each != label]
    groups.sort(key=lambda each: len(each.first))  # a customer's before those of their orders
    return {
        each.name
        for each in facts
        if each.name != label and each.kind == "int" and not each.is_list and each.distinct <= _MOST
        if each.distinct < _LEAST_VALUES or _are_codes(*_once(columns[each.name][known], answers, groups))
    }


class _Groups:
    """The rows of each person that an id names, and the first of them."""

    def __init__(self, ids: Column) -> None:
        self.rows = np.flatnonzero(~is_missing(ids))
        _, first, self.codes = np.unique(categories(ids)[self.rows], return_index=True, return_inverse=True)
        self.first = self.rows[first]


def _once(column: Column, answers: Column, groups: Sequence[_Groups]) -> tuple[Column, Column]:
    """Return a column and the label, of each group one row if all of its rows hold the same value."""
    for each in groups:
        if np.array_equal(column[each.first][each.codes], column[each.rows], equal_nan=True):
            return column[each.first], answers[each.first]
    return column, answers


def _answers(label: Column, *, are_classes: bool) -> Column:
    """Return the numbers of classes, int64 [rows]; or the amounts, float64 [rows], without far outliers.

    A single slip, or the few largest of many prices, would else be all that the means at the values show.
    """
    if are_classes:
        return categories(label)
    least, greatest = np.quantile(label, [_TAIL, 1 - _TAIL])
    room = (greatest - least) / 2 or np.inf
    held = np.clip(label, least - room, greatest + room)
    centred: Floats = held - held.mean()
    return centred


def _are_codes(column: Column, answers: Column) -> bool:
    known = ~np.isnan(column)
    values, codes, rows = np.unique(column[known], return_inverse=True, return_counts=True)
    is_few = len(values) <= FEW
    enough = rows >= _LEAST_ROWS
    count = int(enough.sum())
    if count < _LEAST_VALUES:
        return False
    sums, squares = _sums(codes, answers[known])
    values, rows, means = values[enough], rows[enough], sums[enough] / rows[enough, np.newaxis]
    noise = (squares[enough].sum() - (rows @ means**2).sum()) / (rows.sum() - count)
    if noise * rows.sum() <= _ROUNDED * squares[enough].sum():  # the values tell the label
        return False
    apart = means - np.average(means, axis=0, weights=rows)
    # Each spread is 1 on average if the label has nothing to do with the values.
    if is_few:
        places = values - np.average(values, weights=rows)
        beside = apart - np.outer(places, (rows * places) @ apart / (rows @ places**2))
        return _is_no_chance((rows @ beside**2).sum() / (count - 2) / noise, count - 2)
    any_two = (rows @ apart**2).sum() / (count - 1) / noise
    steps = (np.diff(means, axis=0) ** 2).sum(axis=1) / (1 / rows[1:] + 1 / rows[:-1])
    is_like_any_two = steps.mean() / noise - 1 > _LIKE_ANY_TWO * (any_two - 1)
    return bool(is_like_any_two) and _is_no_chance(any_two, count - 1)


def _sums(codes: Column, answers: Column) -> tuple[Floats, Floats]:
    """Return by value the sum of the label, [values, 1 or classes], and that of its squares, [values]."""
    if answers.dtype != np.int64:
        sums, squares = (np.bincount(codes, each).astype(np.float64) for each in (answers, answers**2))
        return sums[:, np.newaxis], squares
    size = int(answers.max()) + 1
    table = np.bincount(codes * size + answers, minlength=(int(codes.max()) + 1) * size)
    found = table.reshape(-1, size).astype(np.float64)
    return found, found.sum(axis=1)


def _is_no_chance(spread: float, freedom: int) -> bool:
    """Whether a spread is larger than chance alone, by which it is 1 on average, makes it.

    This is the bound for two classes or amounts. Chance makes less of a spread over more classes, but effects
    between the two bounds are so small that categories, with a weight for each class, predict worse.
    """
    return bool(spread > 1 + _SURE * np.sqrt(2 / freedom))
