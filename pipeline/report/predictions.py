"""Compares a model's predictions with the labels, as curves and tables. Pure.

Everything is computed from the counts in the model gate's verdict, which cover the whole eval split (see
`slipway.components.model_gate.prediction_counts`).
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from slipway.components.model_gate.prediction_counts import PlainCounts

SIDE_PX = 220.0
_THRESHOLDS = tuple(n / 20 for n in range(1, 20))
_BINS = 10
_SHOWN_CLASSES = 20
_LISTED_CLASSES = 100
_SHOWN_MISTAKES = 10


@dataclass(frozen=True)
class Curve:
    """A line in the unit square.

    Attributes:
        points: the `points` of an SVG polyline, in a square of `SIDE_PX`.
        before: the same for the last blessed model; empty if there is none.
    """

    points: str
    before: str


@dataclass(frozen=True)
class Dot:
    """A group of rows with similar predictions.

    Attributes:
        prediction: mean of the predictions.
        label: mean of the labels; for labels 0 and 1 the share of ones.
        spread: standard deviation of the labels.
        x, y: position of the dot in the picture, px.
        low, high: y of the ends of the error bar, one `spread` below and one above the mean label, px.
    """

    rows: int
    prediction: float
    label: float
    spread: float
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Threshold:
    """The confusion counts when a probability of at least `threshold` is predicted as the positive class.

    Attributes:
        threshold: 0 to 1.
        true_positives, false_positives, false_negatives, true_negatives: rows.
    """

    threshold: float
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> float | None:
        """Share of the positive predictions that are right; None if there are none."""
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float | None:
        """Share of the positive labels that are found; None if there are none."""
        return _share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def false_positive_rate(self) -> float | None:
        """Share of the negative labels that are predicted as positive; None if there are none."""
        return _share(self.false_positives, self.false_positives + self.true_negatives)

    @property
    def accuracy(self) -> float | None:
        """Share of the rows that are predicted correctly; None if there are no rows."""
        right = self.true_positives + self.true_negatives
        return _share(right, right + self.false_positives + self.false_negatives)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None if there are no positive labels or predictions."""
        wrong = self.false_positives + self.false_negatives
        return _share(2 * self.true_positives, 2 * self.true_positives + wrong)


@dataclass(frozen=True)
class Binary:
    """The predictions of a binary classifier.

    Attributes:
        names: the names of the classes 0 and 1.
        roc: recall over the false positive rate.
        precision_recall: precision over recall.
        ones: share of the labels that are 1, which is the precision of a random classifier.
        calibration: the non-empty ones of ten ranges of the probability.
        calibration_error: expected calibration error, 0 to 1: the mean distance of the dots from the
            diagonal, weighted by rows. Source: M. P. Naeini, G. F. Cooper, M. Hauskrecht, Obtaining well
            calibrated probabilities using Bayesian binning, AAAI 2015.
        thresholds: from 0.05 to 0.95.
        even: the threshold 0.5.
    """

    names: tuple[str, str]
    roc: Curve
    precision_recall: Curve
    ones: float
    calibration: tuple[Dot, ...]
    calibration_error: float
    thresholds: tuple[Threshold, ...]
    even: Threshold


@dataclass(frozen=True)
class ByClass:
    """The predictions for one class.

    Attributes:
        label: the name of the class, or its number if it has no name.
        rows: the number of rows with this label.
        recall: share of the rows with this label that are predicted correctly.
        precision: share of the predictions of this class that are right; None if there are none.
    """

    label: str
    rows: int
    recall: float
    precision: float | None


@dataclass(frozen=True)
class Classes:
    """The predictions of a multiclass classifier.

    Attributes:
        labels: the classes of the confusion matrix, ordered by number; empty if there are more than 20.
        matrix: the number of rows by label (outer) and prediction (inner), both in the order of `labels`.
        classes: worst recall first, at most 100.
        left_out: the number of classes that are not in `classes`.
        mistakes: (label, prediction, rows) of the most frequent mistakes, at most 10.
    """

    labels: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    classes: tuple[ByClass, ...]
    left_out: int
    mistakes: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Numbers:
    """The predictions of a regression model.

    Attributes:
        groups: up to ten groups of roughly equal size, by rising prediction.
        low, high: the range of both axes.
    """

    groups: tuple[Dot, ...]
    low: float
    high: float


@dataclass(frozen=True)
class Predictions:
    """The predictions of a model, compared with the labels.

    Attributes:
        rows: rows of the eval split with finite predictions.
        not_finite: the other rows.
        no_class: rows whose label is none of the classes, which are among neither.
        has_baseline: whether the curves of the last blessed model are included.
        has_weights: whether the metrics weight the rows, which are all counted alike here.
        binary, classes, numbers: the result for the kind of model; the other two are None.
    """

    rows: int
    not_finite: int
    has_baseline: bool
    no_class: int = 0
    has_weights: bool = False
    binary: Binary | None = None
    classes: Classes | None = None
    numbers: Numbers | None = None


def predictions(
    counted: Mapping[str, PlainCounts], names: Sequence[str] = (), *, has_weights: bool = False
) -> Predictions | None:
    """Return the predictions in a verdict, or None if it has none.

    Args:
        counted: the model gate's counts: `candidate` and perhaps `baseline`.
        names: the class names in the order of their numbers; empty if they are unknown.
        has_weights: whether the metrics weight the rows.
    """
    own, before = counted.get("candidate") or {}, counted.get("baseline") or {}
    if not own.get("rows"):
        return None
    earlier = before["groups"] if before.get("kind") == "binary" else []
    is_binary = own["kind"] == "binary"
    found = Predictions(
        rows=int(own["rows"]),
        not_finite=int(own["not_finite"]),
        has_baseline=is_binary and bool(earlier),
        no_class=own.get("no_class", 0),
        has_weights=has_weights,
    )
    if own["kind"] == "classes":
        table = classes(own["cells"], names, own.get("by_class", ()), more=own.get("more_classes", 0))
        return replace(found, classes=table)
    if own["kind"] == "numbers":
        return replace(found, numbers=numbers(own["groups"]))
    return replace(found, binary=binary(own["groups"], earlier, names))


Group = Sequence[float]
"""Smallest prediction, rows, sum of labels, sum of squared labels, sum of predictions."""


def binary(groups: Sequence[Group], before: Sequence[Group], names: Sequence[str] = ()) -> Binary:
    """Return the curves of a binary classifier.

    Args:
        groups: by rising prediction; at least one.
        before: the groups of the last blessed model; may be empty.
        names: as in `predictions`; unless there are two, the classes are called 0 and 1.
    """
    at = [_at(threshold, groups) for threshold in _THRESHOLDS]
    rows, ones = sum(g[1] for g in groups), sum(g[2] for g in groups)
    bins = [[g for g in groups if min(int(g[0] * _BINS), _BINS - 1) == index] for index in range(_BINS)]
    dots = tuple(_dot(part, 0.0, 1.0) for part in bins if part)
    no, yes = names if len(names) == 2 else ("0", "1")
    return Binary(
        names=(no, yes),
        roc=Curve(_roc(groups), _roc(before)),
        precision_recall=Curve(_precision_recall(groups), _precision_recall(before)),
        ones=ones / rows,
        calibration=dots,
        calibration_error=sum(dot.rows * abs(dot.prediction - dot.label) for dot in dots) / rows,
        thresholds=tuple(at),
        even=at[_THRESHOLDS.index(0.5)],
    )


def _at(threshold: float, groups: Iterable[Group]) -> Threshold:
    counts = [0, 0, 0, 0]
    for least, rows, ones, *_ in groups:
        is_yes = least >= threshold
        counts[0 if is_yes else 2] += round(ones)
        counts[1 if is_yes else 3] += round(rows - ones)
    return Threshold(threshold, *counts)


def _falling(groups: Sequence[Group]) -> list[tuple[float, float]]:
    """Return the cumulative counts (ones, zeros) by falling prediction, group by group, from (0, 0) on."""
    ones = itertools.accumulate((g[2] for g in reversed(groups)), initial=0.0)
    zeros = itertools.accumulate((g[1] - g[2] for g in reversed(groups)), initial=0.0)
    return list(zip(ones, zeros, strict=True))


def _roc(groups: Sequence[Group]) -> str:
    steps = _falling(groups)
    ones, zeros = steps[-1]
    return _line((zero / zeros, one / ones) for one, zero in steps) if ones and zeros else ""


def _precision_recall(groups: Sequence[Group]) -> str:
    steps = _falling(groups)
    ones = steps[-1][0]
    return _line((one / ones, one / (one + zero)) for one, zero in steps[1:]) if ones else ""


def _line(points: Iterable[tuple[float, float]]) -> str:
    placed = (f"{SIDE_PX * x:.1f},{SIDE_PX * (1 - y):.1f}" for x, y in points)
    return " ".join(dict.fromkeys(placed))


def _dot(groups: Sequence[Group], low: float, high: float) -> Dot:
    rows, label, squared, prediction = (sum(group[part] for group in groups) for part in (1, 2, 3, 4))
    mean = label / rows
    spread = math.sqrt(max(squared / rows - mean * mean, 0.0))

    def place(value: float) -> float:
        return round(SIDE_PX * min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0), 1)

    return Dot(
        rows=round(rows),
        prediction=prediction / rows,
        label=mean,
        spread=spread,
        x=place(prediction / rows),
        y=SIDE_PX - place(mean),
        low=SIDE_PX - place(mean - spread),
        high=SIDE_PX - place(mean + spread),
    )


def numbers(groups: Sequence[Group]) -> Numbers:
    """Merge the groups into up to ten groups of roughly equal size.

    Args:
        groups: by rising prediction; at least one.
    """
    rows = sum(group[1] for group in groups)
    before = itertools.accumulate((group[1] for group in groups), initial=0)
    parts: dict[int, list[Group]] = {}
    for group, start in zip(groups, before, strict=False):
        parts.setdefault(int(_BINS * start / rows), []).append(group)
    rough = [_dot(part, 0.0, 1.0) for part in parts.values()]
    low = min(min(dot.prediction, dot.label - dot.spread) for dot in rough)
    high = max(max(dot.prediction, dot.label + dot.spread) for dot in rough)
    return Numbers(tuple(_dot(part, low, high) for part in parts.values()), low, high)


def classes(
    cells: Iterable[Sequence[int]],
    names: Sequence[str] = (),
    by_class: Iterable[Sequence[int]] = (),
    *,
    more: int = 0,
) -> Classes:
    """Return the confusion matrix, the metrics of each class, and the most frequent mistakes.

    Args:
        cells: (label, prediction, rows).
        names: as in `predictions`; if any class lacks a name, all classes are called by their numbers.
        by_class: (class, rows with this label, right ones, rows with this prediction), if `cells` are only
            the fullest ones.
        more: the number of classes beyond `by_class`, whose recall is better.
    """
    found = {(label, prediction): rows for label, prediction, rows in cells}
    counted = {code: tuple(counts) for code, *counts in by_class} or _by_class(found)
    labels = sorted({code for cell in found for code in cell} | counted.keys())
    called = {code: names[code] if labels[-1] < len(names) else str(code) for code in labels}
    each_class = [
        ByClass(called[code], rows, right / rows, _share(right, given))
        for code, (rows, right, given) in sorted(counted.items())
        if rows
    ]
    # The sort is stable: classes with the same recall stay in the order of their numbers.
    ordered = sorted(each_class, key=lambda each: each.recall)
    wrong = sorted(((rows, cell) for cell, rows in found.items() if cell[0] != cell[1]), reverse=True)
    shown = tuple(labels) if len(labels) <= _SHOWN_CLASSES else ()
    return Classes(
        labels=tuple(called[code] for code in shown),
        matrix=tuple(tuple(found.get((label, prediction), 0) for prediction in shown) for label in shown),
        classes=tuple(ordered[:_LISTED_CLASSES]),
        left_out=max(len(ordered) - _LISTED_CLASSES, 0) + more,
        mistakes=tuple(
            (called[label], called[prediction], rows) for rows, (label, prediction) in wrong[:_SHOWN_MISTAKES]
        ),
    )


def _by_class(cells: Mapping[tuple[int, int], int]) -> dict[int, tuple[int, ...]]:
    """Return the rows with each class as their label, the right ones of these, and the predictions of it."""
    rows, given = Counter[int](), Counter[int]()
    for (label, prediction), many in cells.items():
        rows[label] += many
        given[prediction] += many
    return {code: (rows[code], cells.get((code, code), 0), given[code]) for code in rows}


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
