"""The counts for one output of one model, by slice, in a form that can be merged. Pure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from slipway.components.evaluator.bootstrap import Memberships, Replicates, Samples
from slipway.components.evaluator.grouped_sums import Floats, GroupedSums, Ints
from slipway.components.evaluator.judged import Judged, with_labels_that_count
from slipway.components.evaluator.ranking import RankedRows
from slipway.components.evaluator.request import QUANTILES, RANKS, Request
from slipway.components.metrics.definitions import BY_CLASS, CONFUSION, CURVES, METRICS
from slipway.components.metrics.row_values import HINGES, MEANS, confusion, of_quantiles, one_hot, shares
from slipway.components.model_gate.prediction_counts import DISTINCT_PREDICTIONS
from slipway.components.model_gate.trivial_scores import NO_CLASS

Array = Any

BUCKETS = 10_000
"""Number of buckets of answers between 0 and 1 for a curve, as in TensorFlow Model Analysis."""

COARSE_BUCKETS = 128
"""Number of buckets of a replicate's curve: by chance about as many rows share a bucket as with ten thousand.
The buckets are finer near 0 and 1, where the predictions of a model of rare events lie."""

OF_CLASSES = "rows of classes"
"""Name of the sums of the rows of each class."""

_OF_PROBABILITIES = {name for name, metric in BY_CLASS.items() if metric.takes_probabilities}
_MOST_ROUNDING = 1e-3
"""How far below 0 or above 1 rounding may put a probability."""
# What a constant answer scores in them depends on how frequent each class is.
_COMPARED_BY_CLASS = CURVES | {METRICS["precision"].class_name}


class ModelTally:
    """The counts for one output of one model.

    Attributes:
        sums: by metric class, float64 [slices, parts]. The parts of `answers` are the number of rows whose
            answer is not finite, that are left out of `answers` and `cells` otherwise, that are not binary,
            whose label is none of the classes, and whose answer is no probability, though a metric takes
            some. If rows have weights, there are also the sums of the
            squared weights in each cell of the confusion and in each class of the curve, see `squares_of`.
            With a curve or a precision of several answers a row, `OF_CLASSES` has the weight of the rows of
            each class.
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
        counted = with_labels_that_count(judged)
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
        if classes & _COMPARED_BY_CLASS and self.outputs > 1:
            wanted = shares(one_hot(counted.labels, answers))
            self._add(OF_CLASSES, _weighed(wanted, judged.weights), at)
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
            finite = np.isfinite(answers).all(1)
            outside = np.zeros(len(labels), bool)
            if classes & _OF_PROBABILITIES:
                outside = ((answers < -_MOST_ROUNDING) | (answers > 1 + _MOST_ROUNDING)).any(1)
            if classes & QUANTILES:  # plots and counts use the middle quantile
                answers = answers[:, [_middle(request.quantiles)]]
                self.outputs = 1
            # The label of a row that weighs nothing may stand for none.
            counts = np.ones(len(labels), bool) if judged.weights is None else judged.weights != 0
            self._add_answers(
                labels.astype(np.float64), answers.astype(np.float64), at, counts, finite, outside
            )

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
            self.sums[name] = grown(self.sums.get(name), many, theirs.shape[1])
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
        self.sums[name] = grown(self.sums.get(name), at.many, values.shape[1])
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

    def _add_answers(
        self,
        labels: Floats,
        answers: Floats,
        at: Memberships,
        counts: Array,
        finite: Array,
        outside: Array,
    ) -> None:
        rows, slices = at.rows, at.slices
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
        flags = np.stack([~finite, is_other, told & ~is_binary, has_none, counts & finite & outside], axis=1)
        self._add("answers", flags.astype(np.float64), at)


def _middle(quantiles: Sequence[float]) -> int:
    """Return the index of the quantile nearest to the median."""
    return min(range(len(quantiles)), key=lambda place: abs(quantiles[place] - 0.5))


def squares_of(name: str) -> str:
    """Return the name of the sums of squared weights that belong to the sums of weights called `name`."""
    return f"squares of {name}"


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


def grown(sums: Floats | None, many: int, parts: int) -> Floats:
    """Return sums as [many, parts], with zeros for the slices that are new."""
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
