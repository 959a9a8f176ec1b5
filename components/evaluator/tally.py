"""All counts of an evaluation, by slice and by model, in a form that can be merged. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.evaluator.bootstrap import (
    MOST_SLICES_WITH_BOUNDS,
    Memberships,
    Replicates,
    Samples,
    row_weights,
)
from slipway.components.evaluator.grouped_sums import Floats, GroupedSums, Ints
from slipway.components.evaluator.ranking import RankedRows, group_numbers
from slipway.components.evaluator.request import QUANTILES, RANKS, ModelRequest, NotOursError, Request
from slipway.components.evaluator.slices import Column, SliceKey, check_number, members
from slipway.components.metrics.definitions import BY_CLASS, CONFUSION, CURVES
from slipway.components.metrics.row_values import HINGES, MEANS, confusion, of_quantiles, one_hot, shares
from slipway.components.model_gate.prediction_counts import DISTINCT_PREDICTIONS
from slipway.components.model_gate.trivial_scores import (
    DISTINCT_LABELS,
    NO_CLASS,
    digits_of_labels,
    rounded_label,
)

Array = Any

BUCKETS = 10_000
"""Number of buckets of answers between 0 and 1 for a curve, as in TensorFlow Model Analysis."""

COARSE_BUCKETS = 128
"""Number of buckets of a replicate's curve: by chance about as many rows share a bucket as with ten thousand.
The buckets are finer near 0 and 1, where the predictions of a model of rare events lie."""

_OVERALL = repr(())


@dataclass(frozen=True, slots=True)
class Judged:
    """One model's labels and predictions for a batch.

    Attributes:
        labels: [rows, 1] or [rows, outputs], numbers.
        answers: [rows, outputs], numbers.
        weights: float64 [rows]; None: all rows weigh 1.
        groups: uint64 [rows], the number of each row's group; None: rows have no groups.
    """

    labels: Array
    answers: Array
    weights: Array | None = None
    groups: Array | None = None


class ModelTally:
    """The counts for one output of one model.

    Attributes:
        sums: by metric class, float64 [slices, parts]. The parts of `answers` are the number of rows whose
            answer is not finite, that are left out of `answers` and `cells` otherwise, that are not binary,
            and whose label is none of the classes. If rows have weights, there are also the sums of the
            squared weights in each cell of the confusion and in each class of the curve, see `squares_of`.
        curve: by slice and bucket, positives and negatives.
        answers: by slice and answer, the number of rows, and the sums of labels, squared labels, and answers.
        cells: by slice and label * outputs + answer, the number of rows.
        outputs: how many answers a row has; 0 before the first row.
        lost: number of rows with the answer NaN, which has no place in a curve or a ranking.
        replicates: `sums` and the curve of each replicate; the curve is [slices, 2 * bucket + kind], where
            the kind is 0 for positives and 1 for negatives.
        ranked: the rows by group, if there are metrics of ranks.
    """

    def __init__(self) -> None:
        self.sums: dict[str, Floats] = {}
        self.curve = GroupedSums(2)
        self.answers = GroupedSums(4, most=DISTINCT_PREDICTIONS, rounded=_least_of)
        self.cells = GroupedSums(1)
        self.outputs = 0
        self.lost = 0
        self.replicates = Replicates()
        self.ranked = RankedRows()

    def add(
        self, request: Request, judged: Judged, at: Memberships, samples: Samples, *, output: str = ""
    ) -> None:
        """Count a batch.

        Args:
            at: its slices.
            samples: its replicates.
            output: the model's output that this is; empty if the model has only one.
        """
        labels, answers = judged.labels, judged.answers
        counted = _with_labels_that_count(judged)
        self.outputs = answers.shape[1]
        classes = set(request.metrics_of(output).values())
        for name, formula in {**MEANS, **HINGES, **of_quantiles(request.quantiles)}.items():
            if name in classes:
                values = formula(counted.labels, answers)
                self._add_sampled(name, _weighed(values, judged.weights), at, samples)
        if classes & CONFUSION.keys():
            cells = confusion(counted.labels, answers)
            self._add_sampled("confusion", _weighed(cells, judged.weights), at, samples)
            self._add_squares("confusion", cells, judged.weights, at)
        if classes & (CURVES | RANKS):
            self.lost += int(np.isnan(answers).any(1).sum())
        if classes & CURVES:
            self._add_curve(counted, at, samples)
        if classes & RANKS and judged.groups is not None:
            weights = np.ones(len(labels)) if judged.weights is None else judged.weights
            scores = answers[:, 0].astype(np.float64)
            relevance = counted.labels[:, 0].astype(np.float64)
            self.ranked.add(judged.groups, relevance, scores, weights, at)
        if request.answers:
            if classes & QUANTILES:  # plots and counts use the middle quantile
                answers = answers[:, [_middle(request.quantiles)]]
                self.outputs = 1
            # The label of a row that weighs nothing may stand for none.
            counts = np.ones(len(labels), bool) if judged.weights is None else judged.weights != 0
            self._add_answers(labels.astype(np.float64), answers.astype(np.float64), at, counts)

    def has_both(self, place: int) -> bool:
        """Return True if a slice's curve has positives and negatives; call `curve.compact` first."""
        return bool((self.curve.of_slice(place)[1].sum(0) > 0).all())

    def merge(self, other: "ModelTally", places: Ints, many: int, bounded: int) -> None:
        """Add counts from elsewhere.

        Args:
            other: the counts; its slices are in another order.
            places: the index here of each slice of `other`.
            many: number of slices here.
            bounded: how many of them have bounds.
        """
        self.replicates.merge(other.replicates, places, bounded)
        for name, theirs in other.sums.items():
            self.sums[name] = _grown(self.sums.get(name), many, theirs.shape[1])
            self.sums[name][places[: len(theirs)]] += theirs
        self.curve.merge(other.curve, places)
        self.ranked.merge(other.ranked, places)
        self.answers.merge(other.answers, places)
        self.cells.merge(other.cells, places)
        self.outputs = self.outputs or other.outputs
        self.lost += other.lost

    def _add_sampled(self, name: str, values: Floats, at: Memberships, samples: Samples) -> None:
        self._add(name, values, at)
        self.replicates.add(name, values, samples)

    def _add(self, name: str, values: Floats, at: Memberships) -> None:
        self.sums[name] = _grown(self.sums.get(name), at.many, values.shape[1])
        for part in range(values.shape[1]):
            self.sums[name][:, part] += np.bincount(
                at.slices, weights=values[at.rows, part], minlength=at.many
            )

    def _add_squares(self, name: str, counts: Floats, weights: Array | None, at: Memberships) -> None:
        if weights is not None:
            self._add(squares_of(name), _weighed(counts, weights**2), at)

    def _add_curve(self, judged: Judged, at: Memberships, samples: Samples) -> None:
        labels, answers = judged.labels, judged.answers
        wanted = shares(one_hot(labels, answers))
        buckets = _bucket(np.where(np.isnan(answers), 0, answers)).ravel()
        counts = np.stack([wanted.ravel(), 1 - wanted.ravel()], axis=1)
        self._add_squares("curve", np.stack([wanted.sum(1), (1 - wanted).sum(1)], axis=1), judged.weights, at)
        width = answers.shape[1]
        if judged.weights is not None:
            counts = _weighed(counts, np.repeat(judged.weights, width))
        entries = (at.rows[:, None] * width + np.arange(width)).ravel() if width > 1 else at.rows
        self.curve.add(np.repeat(at.slices, width), buckets[entries].astype(np.float64), counts[entries])
        cells = 2 * _COARSE[buckets].reshape(-1, width)
        for kind in (0, 1):
            factors = counts[:, kind].reshape(-1, width)
            self.replicates.add_to_cells("curve", cells + kind, 2 * COARSE_BUCKETS, factors, samples)

    def _add_answers(self, labels: Floats, answers: Floats, at: Memberships, counts: Array) -> None:
        rows, slices = at.rows, at.slices
        finite = np.isfinite(answers).all(1)
        told = np.zeros(len(answers), bool)
        if answers.shape[1] == labels.shape[1] == 1:
            label, answer = labels[:, 0], answers[:, 0]
            told = counts & finite & np.isfinite(label)
            sums = np.stack([np.ones(len(label)), label, label * label, answer], axis=1)
            kept = told[rows]
            self.answers.add(slices[kept], answer[rows[kept]], sums[rows[kept]])
            is_binary = ((label == 0) | (label == 1)) & (answer >= 0) & (answer <= 1)
            has_none = np.zeros(len(answers), bool)
        else:
            cells, told = _cells(labels, answers, counts & finite)
            has_none = counts & finite & (labels.shape[1] == 1) & (labels[:, 0] == NO_CLASS)
            kept = told[rows]
            self.cells.add(slices[kept], cells[rows[kept]], np.ones((int(kept.sum()), 1)))
            is_binary = np.ones(len(answers), bool)
        is_other = counts & finite & ~told & ~has_none
        flags = np.stack([~finite, is_other, told & ~is_binary, has_none], axis=1)
        self._add("answers", flags.astype(np.float64), at)


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
        widths: by output, how many numbers a label has.
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
        self.labels, self.numbers = (
            {
                each.output: GroupedSums(
                    3, most=DISTINCT_LABELS, rounded=_rounded_labels, digits=_digits_of_labels
                )
                for each in request.models
            }
            for _ in range(2)
        )
        self.widths: dict[str, int] = {}
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
        self.rows = _grown(self.rows[:, None], many, 1)[:, 0] + np.bincount(slices, minlength=many)
        weights = judged[0].weights if judged[0].weights is not None else np.ones(len(judged[0].labels))
        self.weights = _grown(self.weights, many, 2)
        for power in (1, 2):
            self.weights[:, power - 1] += np.bincount(slices, weights=weights[rows] ** power, minlength=many)
        first_model = list(zip(self._request.models, judged, strict=True))[: len(self.labels)]
        for asked, each in first_model if self._request.label_statistics else ():
            self.widths[asked.output] = each.labels.shape[1]
            for labels, counts in _labels(_with_labels_that_count(each).labels):
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
                # Such as a class that it does not know: the remedy is not the candidate's.
                raise ComponentError(f"the last blessed model cannot be compared: {error.message}") from error

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
        self.rows = _grown(self.rows[:, None], many, 1)[:, 0]
        self.rows[places[: len(other.rows)]] += other.rows
        self.weights = _grown(self.weights, many, 2)
        self.weights[places[: len(other.weights)]] += other.weights
        self.widths |= other.widths
        for output, mine_of_output in self.labels.items():
            mine_of_output.merge(other.labels[output], places)
            self.numbers[output].merge(other.numbers[output], places)
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


def _middle(quantiles: Sequence[float]) -> int:
    """Return the index of the quantile nearest to the median."""
    return min(range(len(quantiles)), key=lambda place: abs(quantiles[place] - 0.5))


def squares_of(name: str) -> str:
    """Return the name of the sums of squared weights that belong to the sums of weights called `name`."""
    return f"squares of {name}"


def _with_labels_that_count(judged: Judged) -> Judged:
    """Return the rows with the label 0 where the weight is 0: such a row adds nothing, whatever its label."""
    if judged.weights is None:
        return judged
    return replace(judged, labels=np.where(judged.weights[:, None] == 0, 0, judged.labels))


def _weighed(values: Floats, weights: Array | None) -> Floats:
    """Return each row's terms times its weight, [rows, parts]; at weight 0 even infinity adds nothing."""
    if weights is None:
        return values
    with np.errstate(invalid="ignore"):
        found: Floats = np.where(weights[:, None] == 0, 0.0, values * weights[:, None])
    return found


def least_of(answers: Floats) -> Floats:
    """Apply `model_gate.prediction_counts.least` to each answer."""
    sure = (answers >= 0.5) & (answers <= 1.0)
    return np.where(sure, 1.0 - _three_digits(1.0 - answers, np.ceil), _three_digits(answers, np.floor))


def _three_digits(values: Floats, whole: Any) -> Floats:
    known = np.where(values == 0, 1.0, np.abs(values))
    exponents, places = np.unique(np.floor(np.log10(known)) - 2, return_inverse=True)
    scale = np.array([10.0 ** int(exponent) for exponent in exponents])[places]  # NumPy's power is less exact
    return np.where(values == 0, 0.0, whole(values / scale) * scale)


def _least_of(answers: Floats, _digits: int) -> Floats:
    return least_of(answers)


def _digits_of_labels(labels: Floats) -> int:
    return digits_of_labels(labels.tolist())


def _rounded_labels(labels: Floats, digits: int) -> Floats:
    different, places = np.unique(labels, return_inverse=True)
    return np.array([rounded_label(label, digits) for label in different.tolist()])[places]


def _grown(sums: Floats | None, many: int, parts: int) -> Floats:
    found = np.zeros((many, parts))
    if sums is not None:
        found[: len(sums)] = sums
    return found


def _bucket(answers: Array) -> Ints:
    """Return the bucket of each answer: 0 below zero, 1 to `BUCKETS` from 0 to 1, the last from 1."""
    place = answers.astype(np.float64) * BUCKETS + 1
    found: Ints = np.clip(place, 0, BUCKETS + 1).astype(np.int64)
    return found


def _coarse() -> Ints:
    """Return each bucket's coarse bucket: 0 below zero, the last from 1, between them evenly by log odds."""
    share = (np.arange(1, BUCKETS + 1) - 0.5) / BUCKETS
    odds = np.log(share / (1 - share))
    between = (odds - odds[0]) / (odds[-1] - odds[0]) * (COARSE_BUCKETS - 2)
    inner = np.minimum(between.astype(np.int64), COARSE_BUCKETS - 3) + 1
    return np.array([0, *inner.tolist(), COARSE_BUCKETS - 1])


_COARSE = _coarse()


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


def _cells(labels: Floats, answers: Floats, finite: Array) -> tuple[Floats, Array]:
    """Return each row's label and answer as one number, and a mask of the rows where both are known."""
    outputs = answers.shape[1]
    if outputs == 1:
        return np.zeros(len(answers)), np.zeros(len(answers), bool)
    if labels.shape[1] == 1:
        wanted = labels[:, 0]
        told = finite & (wanted >= 0) & (wanted < outputs) & (wanted == np.floor(wanted))
    else:
        told = finite & (np.sort(labels, axis=1) == [0.0] * (outputs - 1) + [1.0]).all(1)
        wanted = labels.argmax(1).astype(np.float64)
    cells = np.where(told, wanted, 0) * outputs + np.where(told[:, None], answers, 0).argmax(1)
    return cells, told


def check_shapes(request: Request, judged: Judged, asked: ModelRequest) -> None:
    """Check that the metrics support the labels, and the shapes of labels and predictions.

    Args:
        asked: the model and output of the rows.

    Raises:
        ComponentError: the answers are not the quantiles, or the score, that the metrics need; or a label is
            infinite: whatever a model answers, its errors then are, and nothing can be compared.
        NotOursError: the labels are neither one per row nor one per answer, or a metric may not accept the
            shapes: this is left to TFX's own executor.
    """
    width, outputs = judged.labels.shape[1], judged.answers.shape[1]
    classes = set(request.metrics_of(asked.output).values())
    many = len(request.quantiles)
    labels = _with_labels_that_count(judged).labels
    if (is_infinite := np.isinf(labels)).any():
        raise _infinite_label(asked, float(labels[is_infinite][0]))
    if classes & QUANTILES and (width, outputs) != (1, many):
        raise _other_shape(
            asked,
            f"evaluate.quantiles names {many} quantiles of one label",
            f"a row has {counted(width, 'label')} and {counted(outputs, 'answer')}",
            hint="let the model answer [rows, quantiles], in their order, and name one number as the label",
        )
    if classes & RANKS and (width, outputs) != (1, 1):
        raise _other_shape(
            asked,
            "rows of a group are ranked by one answer, and compared with one label",
            f"a row has {counted(width, 'label')} and {counted(outputs, 'answer')}",
            hint="let the model answer [rows, 1]",
        )
    if outputs == 0 or width not in (1, outputs):
        raise NotOursError(f"a row has {counted(width, 'label')} and {counted(outputs, 'answer')}")
    unfit = {"one"} if width > 1 else set()
    unfit |= {"one_an_answer"} if width != outputs else set()
    for name, class_name in request.metrics_of(asked.output).items():
        if BY_CLASS[class_name].labels in unfit:
            counts = f"{counted(width, 'label')} and {counted(outputs, 'answer')}"
            raise NotOursError(f"a row has {counts}, which {name} may not accept")


def _infinite_label(asked: ModelRequest, label: float) -> ComponentError:
    if asked.is_baseline:  # the engine adds the command that clears it
        return ComponentError(
            f"a label of the last blessed model is {label:g} in the eval split: the two cannot be compared"
        )
    return ComponentError(
        f"a label must be a finite number, and one of the eval split is {label:g}",
        hint="check transform.label, and what preprocessing_fn makes of it, such as a logarithm of 0",
    )


def _other_shape(asked: ModelRequest, wanted: str, found: str, *, hint: str) -> ComponentError:
    if asked.is_baseline:  # the engine adds the command that clears it
        return ComponentError(f"{wanted}; of the last blessed model {found}: the two cannot be compared")
    return ComponentError(f"{wanted}; {found}", hint=hint)
