"""All counts of an evaluation, by slice and by model, in a form that can be merged. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slipway.components.errors import ComponentError
from slipway.components.evaluator.bootstrap import MOST_SLICES_WITH_BOUNDS, Memberships, Samples, row_weights
from slipway.components.evaluator.grouped_sums import Floats, GroupedSums, Ints
from slipway.components.evaluator.judged import Judged, with_labels_that_count
from slipway.components.evaluator.label_agreement import LabelAgreement
from slipway.components.evaluator.model_tally import ModelTally, grown
from slipway.components.evaluator.ranking import group_numbers
from slipway.components.evaluator.request import QUANTILES, Request
from slipway.components.evaluator.slices import Column, SliceKey, check_number, members
from slipway.components.metrics.definitions import OF_DEVIATIONS
from slipway.components.model_gate.trivial_scores import (
    DISTINCT_LABELS,
    MOST_ENTRIES,
    NO_CLASS,
    digits_of_labels,
    rounded_label,
)

Array = Any

_OVERALL = repr(())


class Tally:
    """All counts of an evaluation.

    Attributes:
        keys: the slices, in order of first occurrence.
        total: number of rows.
        cut_to: most rows of a batch since memory ran out over a larger one; None: it did not.
        rows: number of rows in each slice, float64 [slices].
        weights: float64 [slices, 2], the sums of the rows' weights and of their squares.
        labels: by output, the labels of the first model: by slice and label, the sums of the rows' weights
            and of their squares, and the number of rows; for labels that are vectors see
            `trivial_scores.labels_of_vectors`.
        numbers: the same for the elements of vectors that are not a class.
        entries: by output, for each entry of labels that are vectors the weight of the rows by its number,
            over all rows; empty where no metric is compared with them.
        widths: by output, how many numbers a label has.
        agreements: by output, whether the baseline has the candidate's labels; empty without a baseline.
        models: one for each of the request's models.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        # Keyed by text: NaN does not equal NaN, so each batch would add a slice for it.
        self._places: dict[str, int] = {}
        self.keys: list[SliceKey] = []
        self.total = 0
        self.cut_to: int | None = None
        self.rows: Floats = np.zeros(0)
        self.weights: Floats = np.zeros((0, 2))
        self.labels, self.numbers, self.entries = (
            {
                each.output: GroupedSums(
                    width, most=DISTINCT_LABELS, rounded=_rounded_labels, digits=_digits_of_labels
                )
                for each in request.models
            }
            for width in (3, 3, 1)
        )
        self.widths: dict[str, int] = {}
        self.agreements = {
            each.output: LabelAgreement(
                of_classes=not QUANTILES & {*request.metrics_of(each.output).values()}
            )
            for each in request.models
            if each.is_baseline
        }
        self.models = [ModelTally() for _ in request.models]

    @property
    def bounded(self) -> int:
        """Number of slices for which replicates are kept, which are the first ones. If there are too many
        slices, they end with the slice of all rows, the only one with bounds."""
        if not self.is_cut:
            return len(self.keys)
        return self._places[_OVERALL] + 1 if _OVERALL in self._places else 0

    @property
    def is_cut(self) -> bool:
        """Whether there are too many slices to have bounds for each."""
        return len(self.keys) > MOST_SLICES_WITH_BOUNDS

    def add(self, columns: Mapping[str, Column], judged: Sequence[Judged], *, first: int) -> None:
        """Count a batch.

        Args:
            columns: the columns to slice by.
            judged: the labels and predictions of each model.
            first: the number of the batch's first row, see `bootstrap.row_number`.

        Raises:
            ComponentError: there are too many slices; a metric is not defined for the labels or answers.
        """
        many = len(judged[0].labels)
        self.total += many
        if group := self._request.group:
            numbers = group_numbers(columns.get(group), many, group)
            judged = [replace(each, groups=numbers) for each in judged]
        rows, slices = [], []
        for spec in self._request.slices:
            found = members(spec, columns, many)
            rows.append(found.rows)
            slices.append(self._place(found.keys)[found.slices])
        check_number(self.keys)
        at = Memberships(np.concatenate(rows), np.concatenate(slices), len(self.keys))
        self._add(at, self._samples(at, first, many), judged)

    @property
    def effective_rows_per_weight(self) -> Floats:
        """Effective number of rows per unit of weight, by slice: 1 if every row weighs 1 (L. Kish, Survey
        Sampling, 1965)."""
        found: Floats = np.ones(len(self.weights))
        np.divide(self.weights[:, 0], self.weights[:, 1], out=found, where=self.weights[:, 1] > 0)
        return found

    def _samples(self, at: Memberships, first: int, rows: int) -> Samples:
        if self.is_cut:
            self._drop_bounds()
            kept = at.slices == self._places.get(_OVERALL, -1)
            at = Memberships(at.rows[kept], at.slices[kept], self.bounded)
        return Samples.of(at, row_weights(first, rows))

    def _drop_bounds(self) -> None:
        for model in self.models:
            model.replicates.keep_only(self._places.get(_OVERALL))

    def _add(self, at: Memberships, samples: Samples, judged: Sequence[Judged]) -> None:
        rows, slices, many = at.rows, at.slices, at.many
        self.rows = grown(self.rows[:, None], many, 1)[:, 0] + np.bincount(slices, minlength=many)
        weights = judged[0].weights if judged[0].weights is not None else np.ones(len(judged[0].labels))
        self.weights = grown(self.weights, many, 2)
        for power in (1, 2):
            self.weights[:, power - 1] += np.bincount(slices, weights=weights[rows] ** power, minlength=many)
        first_model = list(zip(self._request.models, judged, strict=True))[: len(self.labels)]
        for asked, each in first_model if self._request.label_statistics else ():
            self.widths[asked.output] = each.labels.shape[1]
            counted = with_labels_that_count(each).labels
            if OF_DEVIATIONS & {*self._request.metrics_of(asked.output).values()}:
                _add_entries(self.entries[asked.output], counted, weights)
            for labels, counts in _labels(counted):
                kept = ~np.isnan(labels)[rows]
                weighing = weights[rows[kept], None]
                sums = np.hstack([weighing, weighing**2, np.ones_like(weighing)])
                of_output = self.labels if counts else self.numbers
                of_output[asked.output].add(slices[kept], labels[rows[kept]], sums)
        for model, asked, each in zip(self.models, self._request.models, judged, strict=True):
            try:
                model.add(self._request, each, at, samples, output=asked.output)
            except ComponentError as error:
                if not asked.is_baseline:
                    raise
                # For example, it does not know a class: the remedy is not the candidate's.
                raise ComponentError(f"the last blessed model cannot be compared: {error.message}") from error
        both = list(zip(self._request.models, judged, strict=True))
        candidates = {asked.output: each for asked, each in both if not asked.is_baseline}
        for asked, each in both:
            if asked.is_baseline:
                self.agreements[asked.output].add(candidates[asked.output], each)

    def merge(self, other: "Tally") -> None:
        """Add the counts of another process for the same request.

        Raises:
            ComponentError: there are too many slices.
        """
        self.total += other.total
        self.cut_to = min((each.cut_to for each in (self, other) if each.cut_to), default=None)
        places = self._place(other.keys)
        check_number(self.keys)
        many = len(self.keys)
        self.rows = grown(self.rows[:, None], many, 1)[:, 0]
        self.rows[places[: len(other.rows)]] += other.rows
        self.weights = grown(self.weights, many, 2)
        self.weights[places[: len(other.weights)]] += other.weights
        self.widths |= other.widths
        for output, mine_of_output in self.labels.items():
            mine_of_output.merge(other.labels[output], places)
            self.numbers[output].merge(other.numbers[output], places)
            theirs_by_entry = other.entries[output]
            self.entries[output].merge(theirs_by_entry, np.arange(self.widths.get(output, 0)))
        for output, agreement in self.agreements.items():
            agreement.merge(other.agreements[output])
        for mine, theirs in zip(self.models, other.models, strict=True):
            mine.merge(theirs, places, many, self.bounded)
        if self.is_cut:
            self._drop_bounds()

    def _place(self, keys: Sequence[SliceKey]) -> Ints:
        names = [repr(key) for key in keys]
        for name, key in zip(names, keys, strict=True):
            if name not in self._places:
                self._places[name] = len(self.keys)
                self.keys.append(key)
        return np.array([self._places[name] for name in names], np.int64)


def _digits_of_labels(labels: Floats) -> int:
    return digits_of_labels(labels.tolist())


def _rounded_labels(labels: Floats, digits: int) -> Floats:
    different, places = np.unique(labels, return_inverse=True)
    return np.array([rounded_label(label, digits) for label in different.tolist()])[places]


def _add_entries(entries: GroupedSums, labels: Array, weights: Floats) -> None:
    """Count the labels of rows, [rows, width], by entry; one number a row, or too many, are not counted."""
    rows, width = labels.shape
    if not 1 < width <= MOST_ENTRIES:
        return
    known = ~np.isnan(labels.astype(np.float64)).ravel()
    of_each = np.tile(np.arange(width), rows)[known]
    entries.add(of_each, labels.ravel()[known], np.repeat(weights, width)[known, None])


def _labels(labels: Array) -> Iterator[tuple[Floats, bool]]:
    """Yield labels of rows, [rows], NaN where a row has none, and whether they are one number or a class.

    A one-hot vector is a class, and a vector of zeros is `NO_CLASS`; of any other vector each number is a
    label.
    """
    values: Floats = labels.astype(np.float64)
    if values.shape[1] == 1:
        yield values[:, 0], True
        return
    ones, others = np.count_nonzero(values == 1, axis=1), np.count_nonzero(values, axis=1)
    is_class = (others == ones) & (ones <= 1)
    yield np.where(is_class, np.where(ones == 1, (values == 1).argmax(1), NO_CLASS), np.nan), True
    if not is_class.all():
        yield from ((column, False) for column in np.where(is_class[:, None], np.nan, values).T)
