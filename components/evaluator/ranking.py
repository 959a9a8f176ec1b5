"""Measures how well rows are ranked within groups, such as search results: NDCG, reciprocal rank. Pure.

The rows of a group may lie in any file, so rows are kept until all have been read: 40 bytes each, and 140 at
most while they are ranked. Rows of weight 0 are not ranked; a group's weight is the mean weight of the
others. A group without a label above 0 is left out, because all its orders are equally good.

Sources: K. Järvelin, J. Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM Transactions on
Information Systems 20 (2002), with the label itself as gain. All orders of equal answers are equally
probable, as in scikit-learn's `ndcg_score`: F. McSherry, M. Najork, Computing information retrieval
performance measures efficiently in the presence of tied scores, ECIR 2008; the reciprocal rank is that of the
mean rank of the first row with a label above 0.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from slipway.components.errors import ComponentError
from slipway.components.evaluator.bootstrap import REPLICATES, Memberships, weights_of
from slipway.components.evaluator.grouped_sums import Floats, Ints
from slipway.components.evaluator.slices import Column

Array = Any  # of NumPy

MOST_ROWS = 10_000_000
"""The most rows kept for each model, a row once for each of its slices: some 400 MB, then 640 MB sorted."""

_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class _Sorted:
    """Rows sorted by slice, group and descending answer.

    Attributes:
        group: of each row, the index of its group, counted over all slices: 0, 1, ...
        place: of each row, its position in its group, from 0.
        tie: of each row, the index of the run of equal answers that contains it.
        slices, numbers: of each group, its slice and its number from `group_numbers`.
    """

    group: Ints
    place: Ints
    tie: Ints
    labels: Floats
    weights: Floats
    slices: Ints
    numbers: Array


def _ndcg(rows: _Sorted, *, at: int | None) -> Floats:
    """Return each group's gain divided by that of its best order; NaN without a label above 0."""
    discounts = 1 / np.log2(rows.place + 2.0)
    if at is not None:
        discounts[rows.place >= at] = 0.0
    of_tie = np.bincount(rows.tie, discounts) / np.bincount(rows.tie)
    gain = np.bincount(rows.group, rows.labels * of_tie[rows.tie])
    best_first = np.lexsort((-rows.labels, rows.group))
    best = np.bincount(rows.group, rows.labels[best_first] * discounts)
    found: Floats = np.divide(gain, best, out=np.full(len(gain), np.nan), where=best > 0)
    return found


def _reciprocal_rank(rows: _Sorted) -> Floats:
    """Return the reciprocal of the mean rank of each group's first label above 0; NaN without one."""
    found = np.full(len(rows.slices), np.nan)
    wanted = np.bincount(rows.tie, rows.labels > 0)
    size = np.bincount(rows.tie)
    starts = np.concatenate([[0], size.cumsum()[:-1]])
    hit = np.flatnonzero(wanted)
    groups, first = np.unique(rows.group[starts[hit]], return_index=True)
    ties = hit[first]
    found[groups] = 1 / (rows.place[starts[ties]] + (size[ties] + 1) / (wanted[ties] + 1))
    return found


def _reciprocal_rank_by_chance(rows: _Sorted) -> Floats:
    """Return the expected reciprocal rank of a random order; NaN without a label above 0.

    Of n rows with r labels above 0, the first of these r has the rank k with the probability C(n - k, r - 1)
    / C(n, r). The expectation is higher than the reciprocal of the mean rank, which is what equal answers
    get.
    """
    sizes = np.bincount(rows.group)
    wanted = np.bincount(rows.group, rows.labels > 0).astype(np.int64)
    kinds, places = np.unique(np.stack([sizes, wanted]), axis=1, return_inverse=True)
    found = np.full(kinds.shape[1], np.nan)
    for kind, (size, hits) in enumerate(kinds.T.tolist()):
        if hits:
            ranks = np.arange(1, size - hits + 2)
            follows = (size - ranks[:-1] - hits + 1) / (size - ranks[:-1])
            found[kind] = hits / size * np.sum(np.cumprod([1.0, *follows]) / ranks)
    of_groups: Floats = found[places.ravel()]
    return of_groups


RANKINGS: dict[str, Callable[[_Sorted], Floats]] = {
    "GroupReciprocalRank": _reciprocal_rank,
    "GroupNDCG": partial(_ndcg, at=None),
    "GroupNDCG5": partial(_ndcg, at=5),
    "GroupNDCG10": partial(_ndcg, at=10),
}
"""Metric classes that are computed per group; a metric is the mean over groups."""


BY_CHANCE = {**RANKINGS, "GroupReciprocalRank": _reciprocal_rank_by_chance}
"""The same metrics for rows whose answers are all equal, as the mean over all orders."""


class RankedRows:
    """The rows of one model, by slice and group."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Array, Floats, Floats, Floats]] = []
        self._rows = 0
        self._sorted: _Sorted | None = None

    def add(self, groups: Array, labels: Floats, answers: Floats, weights: Floats, at: Memberships) -> None:
        """Keep rows; those that weigh nothing are not ranked, as nothing is known of their relevance.

        Args:
            groups: the group of each row, see `group_numbers`.
            labels, answers: [rows], each row's relevance, from 0 on, and the model's score for it; the caller
                refuses NaN, which has no rank.
            at: the slices of the rows.

        Raises:
            ComponentError: a label is negative or NaN, or there are more than `MOST_ROWS`.
        """
        if not (labels >= 0).all():
            raise ComponentError(
                f"a label of the eval split is {labels[~(labels >= 0)][0]:g}, but ranking needs relevance "
                "labels of 0 or more",
                hint="check transform.label",
            )
        counts = weights[at.rows] > 0
        rows = at.rows[counts]
        self._keep((at.slices[counts], groups[rows], labels[rows], answers[rows], weights[rows]))

    def merge(self, other: "RankedRows", places: Ints) -> None:
        """Add rows kept elsewhere. Raises the errors of `add`.

        Args:
            other: the rows; its slices are in another order.
            places: the index here of each slice of `other`.
        """
        for slices, *others in other._parts:
            self._keep((places[slices], *others))

    def _keep(self, part: tuple[Ints, Array, Floats, Floats, Floats]) -> None:
        self._rows += part[0].size
        if self._rows > MOST_ROWS:
            raise ComponentError(
                f"ranking metrics are limited to {MOST_ROWS:,} rows of the eval split, "
                "counting each row once overall and once per slice",
                hint="name fewer evaluate.slices, or give the eval split a smaller share in data.split",
            )
        self._parts.append(part)
        self._sorted = None

    def means(self, class_name: str, many: int, *, by_chance: bool = False) -> Floats:
        """Return the metric of each of `many` slices, NaN where no group has a value.

        Args:
            by_chance: return the expected metric of a random order instead of that of the answers.
        """
        slices, _, values, weights = self._values(class_name, by_chance=by_chance)
        with np.errstate(invalid="ignore"):
            found: Floats = np.bincount(slices, values * weights, many) / np.bincount(slices, weights, many)
        return found

    def groups(self, class_name: str, many: int) -> Floats:
        """Return each slice's effective number of groups: how many groups of equal weight tell as much."""
        slices, _, _, weights = self._values(class_name)
        sums, squares = (np.bincount(slices, weights**power, many) for power in (1, 2))
        found: Floats = np.divide(sums * sums, squares, out=np.zeros(many), where=squares > 0)
        return found

    def replicates(self, class_name: str, many: int) -> Floats:
        """Return the metric in each replicate, [slices, REPLICATES]; whole groups are resampled."""
        slices, numbers, values, weights = self._values(class_name)
        sums = np.zeros((2, many, REPLICATES))
        for first in range(0, slices.size, _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            inside = np.flatnonzero(slices[part] < many) + first
            drawn = weights_of(numbers[inside]) * weights[inside, None]
            ones = np.ones(inside.size)
            at = (slices[inside], np.arange(inside.size))
            matrix = sparse.csr_matrix((ones, at), shape=(many, inside.size))
            sums += [matrix @ (drawn * values[inside, None]), matrix @ drawn]
        found: Floats = np.divide(sums[0], sums[1], out=np.full(sums[0].shape, np.nan), where=sums[1] > 0)
        return found

    def _values(self, class_name: str, *, by_chance: bool = False) -> tuple[Ints, Array, Floats, Floats]:
        """Return slice, number, value and weight of each group that has a value."""
        rows = self._in_order()
        values = (
            BY_CHANCE[class_name](replace(rows, tie=rows.group)) if by_chance else RANKINGS[class_name](rows)
        )
        weights = np.bincount(rows.group, rows.weights) / np.maximum(np.bincount(rows.group), 1)
        known = ~np.isnan(values)
        return rows.slices[known], rows.numbers[known], values[known], weights[known]

    def _in_order(self) -> _Sorted:
        if self._sorted is None:
            nothing = (np.zeros(0, np.int64), np.zeros(0, np.uint64), *(np.zeros(0),) * 3)
            parts = zip(*(self._parts or [nothing]), strict=True)
            slices, groups, labels, answers, weights = map(np.concatenate, parts)
            self._parts = []  # releases the unsorted parts, so that millions of rows are not held twice
            order = np.lexsort((-answers, groups, slices))
            slices, groups, answers = slices[order], groups[order], answers[order]
            labels, weights = labels[order], weights[order]
            self._parts = [(slices, groups, labels, answers, weights)]
            begins = np.ones(order.size, bool)
            begins[1:] = (slices[1:] != slices[:-1]) | (groups[1:] != groups[:-1])
            differs = begins.copy()
            differs[1:] |= answers[1:] != answers[:-1]
            starts = np.flatnonzero(begins)
            group = begins.cumsum() - 1
            self._sorted = _Sorted(
                group=group,
                place=np.arange(order.size) - starts[group],
                tie=differs.cumsum() - 1,
                labels=labels,
                weights=weights,
                slices=slices[starts],
                numbers=groups[starts],
            )
        return self._sorted

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_sorted": None}


def group_numbers(column: Column | None, rows: int, name: str) -> Array:
    """Return a number for the group of each row that is the same in every process.

    Args:
        column: the column that names the groups; None: no row has it.

    Raises:
        ComponentError: a row is in no group, or in several.
    """
    if column is None or not np.array_equal(column.rows, np.arange(rows)):
        several = column is not None and column.rows.size > np.unique(column.rows).size
        raise ComponentError(
            f"a row of the eval split has {'several values of' if several else 'no'} {name}, which names its "
            "group",
            hint="check transform.group, and that schema and data have the column in every row",
        )
    digests = [hashlib.blake2b(repr(value).encode(), digest_size=8).digest() for value in column.values]
    numbers = np.frombuffer(b"".join(digests), "<u8")
    return numbers[column.codes]
