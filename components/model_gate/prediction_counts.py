"""Counts a model's predictions against the labels, enough for drawing curves. Pure.

Counts are used instead of rows: their size does not grow with the data, counts of parts can be merged, and a
report reveals nothing of a single row.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict

DISTINCT_PREDICTIONS = 4096
"""If a model gives more distinct predictions than this, they are rounded to three digits."""

GROUPS = 200
"""Number of groups of neighbouring predictions to report: more than a screen can show."""

CUTS = 20
"""Groups of probabilities end at each multiple of 1 / CUTS, so that counts at these thresholds are exact."""

CELLS = 2500
"""Number of cells of a confusion matrix to report, the fullest first: all cells of 50 classes."""

_NO_CLASS = -1.0

Kind = Literal["binary", "classes", "numbers"]


class PlainCounts(TypedDict, total=False):
    """`PredictionCounts` as JSON, at most a few thousand numbers; empty if nothing was counted.

    Without `kind`, only `not_finite` and `outside` are told, and `rows` is 0.

    Attributes:
        rows: number of counted rows; `not_finite`: number of rows with a prediction that is NaN or infinite.
        outside: number of rows with a prediction below 0 or above 1, if there are any and a metric takes
            probabilities.
        cells: for the kind `classes`, entries [label, prediction, rows]; `left_out`: number of rows in the
            cells beyond `CELLS`; `no_class`: number of rows whose label is none of the classes, if there are
            any; they are not among `rows`.
        by_class: if cells are left out, entries [class, rows with this label, of these with this prediction,
            rows with this prediction] over all rows, the lowest recall first; `more_classes`: number of
            classes beyond `CELLS`.
        groups: for the other kinds, by ascending prediction, entries [least prediction, rows, sum of labels,
            of squared labels, of predictions].
    """

    kind: Kind
    rows: int
    not_finite: int
    outside: int
    cells: list[list[int]]
    left_out: int
    no_class: int
    by_class: list[list[int]]
    more_classes: int
    groups: list[list[float]]


@dataclass
class Group:
    """Rows with the same prediction, or with neighbouring ones.

    Attributes:
        label: sum of their labels.
        label_squared: sum of their squared labels.
        prediction: sum of their predictions.
    """

    rows: int = 0
    label: float = 0.0
    label_squared: float = 0.0
    prediction: float = 0.0

    @property
    def sums(self) -> tuple[float, float, float]:
        """The sums of the labels, of the squared labels, and of the predictions."""
        return self.label, self.label_squared, self.prediction

    def add(self, other: "Group") -> None:
        """Add the rows of another group."""
        self.rows += other.rows
        self.label += other.label
        self.label_squared += other.label_squared
        self.prediction += other.prediction


@dataclass
class PredictionCounts:
    """The predictions of one model on one slice.

    Attributes:
        groups: for a model with one output: the least prediction of a group -> its rows.
        cells: for a model with one output per class: (label, prediction) -> rows.
        is_binary: whether each label so far was 0 or 1, and each prediction from 0 to 1.
        is_rounded: whether a group holds the predictions that agree in three digits.
        not_finite: number of rows with a prediction that is NaN or infinite; they are in no group.
        not_told: number of rows that fit neither form, such as several classes at once.
        no_class: for a model with one output per class, number of rows with the label -1, which the labels'
            vocabulary does not hold.
        outside: number of rows with a prediction that is no probability, though a metric takes some.
    """

    groups: dict[float, Group] = field(default_factory=dict)
    cells: dict[tuple[int, int], int] = field(default_factory=dict)
    is_binary: bool = True
    is_rounded: bool = False
    not_finite: int = 0
    not_told: int = 0
    no_class: int = 0
    outside: int = 0

    def add(self, label: Sequence[float], prediction: Sequence[float], *, weight: float = 1.0) -> None:
        """Count one row.

        Args:
            label: a number, a class, or a one-hot vector as long as the prediction.
            prediction: one number, or one for each class.
            weight: of the row. If it is 0, only a prediction that is not finite counts: the label may stand
                for none. Otherwise every row counts the same.
        """
        if not all(map(math.isfinite, prediction)):
            self.not_finite += 1
        elif not weight:
            return
        elif len(prediction) == len(label) == 1 and math.isfinite(label[0]):
            self._add_number(float(label[0]), float(prediction[0]))
        elif len(prediction) > 1 and (wanted := _class_of(label, len(prediction))) is not None:
            given = max(range(len(prediction)), key=prediction.__getitem__)
            self.cells[wanted, given] = self.cells.get((wanted, given), 0) + 1
        elif len(prediction) > 1 and list(label) == [_NO_CLASS]:
            self.no_class += 1
        else:
            self.not_told += 1

    def _add_number(self, label: float, prediction: float) -> None:
        self.is_binary = self.is_binary and label in (0.0, 1.0) and 0.0 <= prediction <= 1.0
        self._put(prediction, Group(1, label, label * label, prediction))
        self._bound()

    def merge(self, other: "PredictionCounts") -> None:
        """Add counts from elsewhere."""
        self.is_binary = self.is_binary and other.is_binary
        if self.is_rounded or other.is_rounded:
            self._round()
        for prediction, group in other.groups.items():
            # Numbers already rounded are kept: 0.00043 rounded again would be 0.000429.
            (self._put_there if other.is_rounded else self._put)(prediction, group)
        for cell, rows in other.cells.items():
            self.cells[cell] = self.cells.get(cell, 0) + rows
        self.not_finite += other.not_finite
        self.not_told += other.not_told
        self.no_class += other.no_class
        self.outside += other.outside
        self._bound()

    def _put(self, prediction: float, group: Group) -> None:
        self._put_there(least(prediction) if self.is_rounded else prediction, group)

    def _put_there(self, key: float, group: Group) -> None:
        self.groups.setdefault(key, Group()).add(group)

    def _bound(self) -> None:
        if len(self.groups) > DISTINCT_PREDICTIONS:
            self._round()

    def _round(self) -> None:
        if not self.is_rounded:
            exact, self.groups, self.is_rounded = self.groups, {}, True
            for prediction, group in exact.items():
                self._put(prediction, group)

    def to_json(self) -> PlainCounts:
        """Return plain data; unless rows were counted and all fit the same form, only what is not finite."""
        if self.not_told or bool(self.cells) == bool(self.groups):
            outside: PlainCounts = {"outside": self.outside} if self.outside else {}
            return {"rows": 0, "not_finite": self.not_finite, **outside} if self.not_finite or outside else {}
        if self.cells:
            fullest = sorted(self.cells.items(), key=lambda cell: (-cell[1], cell[0]))
            told: PlainCounts = {
                "kind": "classes",
                "cells": [[*cell, rows] for cell, rows in fullest[:CELLS]],
                "left_out": sum(rows for _, rows in fullest[CELLS:]),
            }
            if self.no_class:
                told["no_class"] = self.no_class
            if told["left_out"]:
                by_class = self._by_class()
                told |= {"by_class": by_class[:CELLS], "more_classes": max(len(by_class) - CELLS, 0)}
            rows = sum(self.cells.values())
        else:
            groups = neighbours(self.groups, cuts=CUTS if self.is_binary else 0)
            told = {
                "kind": "binary" if self.is_binary else "numbers",
                "groups": [
                    [_short(least, 9), group.rows, *(_short(value, 15) for value in group.sums)]
                    for least, group in groups
                ],
            }
            rows = sum(group.rows for group in self.groups.values())
        if self.outside:
            told["outside"] = self.outside
        return {**told, "rows": rows, "not_finite": self.not_finite}

    def _by_class(self) -> list[list[int]]:
        """Return the entries of `PlainCounts.by_class`, of all classes that a row has as its label."""
        labels: Counter[int] = Counter()
        given: Counter[int] = Counter()
        for (label, prediction), rows in self.cells.items():
            labels[label] += rows
            given[prediction] += rows
        right = {label: self.cells.get((label, label), 0) for label in labels}
        worst_first = sorted(labels, key=lambda label: (right[label] / labels[label], label))
        return [[label, labels[label], right[label], given[label]] for label in worst_first]


def _short(value: float, digits: int) -> float:
    """Round to this number of digits; nine hold a float32 exactly.

    Sums need all of their digits: the spread of labels is a small difference of two large sums.
    """
    return float(f"{value:.{digits}g}")


def _class_of(label: Sequence[float], classes: int) -> int | None:
    if len(label) == 1:
        return int(label[0]) if label[0] in range(classes) else None
    if len(label) == classes and sorted(label) == [0.0] * (classes - 1) + [1.0]:
        return list(label).index(1.0)
    return None


def least(prediction: float) -> float:
    """Return the least number that agrees with a prediction in three digits.

    Between 0.5 and 1 the digits are those of the distance to 1: a confident model gives 0.9991 for one row
    and 0.9999 for the next, and these are as different as 0.0009 and 0.0001.
    """
    if 0.5 <= prediction <= 1.0:
        return 1.0 - _three_digits(1.0 - prediction, up=True)
    return _three_digits(prediction, up=False)


def _three_digits(value: float, *, up: bool) -> float:
    if value == 0.0:
        return 0.0
    scale = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return (math.ceil if up else math.floor)(value / scale) * scale


def neighbours(groups: Mapping[float, Group], *, cuts: int) -> Iterator[tuple[float, Group]]:
    """Yield about `GROUPS` groups with equal numbers of rows, by ascending prediction.

    Args:
        groups: the least prediction of a group -> its rows.
        cuts: no group extends over a multiple of 1 / cuts; 0: there are no such limits.
    """
    share = sum(group.rows for group in groups.values()) / GROUPS
    start, open_group = 0.0, Group()
    for prediction in sorted(groups):
        is_cut = cuts and math.floor(prediction * cuts) != math.floor(start * cuts)
        if open_group.rows and (is_cut or open_group.rows + groups[prediction].rows > share):
            yield start, open_group
            open_group = Group()
        if not open_group.rows:
            start = prediction
        open_group.add(groups[prediction])
    if open_group.rows:
        yield start, open_group
