"""Whether the baseline is judged by the labels that the candidate is judged by. Pure.

Each model is judged by the labels that its own transform makes. After a change of the label (another unit, a
logarithm, other classes) their metrics are those of two tasks, and a change between them says nothing.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from slipway.components.errors import ComponentError
from slipway.components.evaluator.judged import Judged, with_labels_that_count

Array = Any

MOST_DIFFERENCE = 0.01
"""Largest variance of the difference of two labels that count as the same, as a share of the label's: a label
scaled by its mean and deviation has another scale with new data, a tenth at most, and may have another zero,
which changes no error of a model. Of classes, the largest share of rows."""
MOST_OF_WHOLE_NUMBERS = 0.05
"""Of whole numbers, the largest mean square of the difference as a share of the label's variance: one row in
a hundred may be on the other side of a mean that has moved."""

_MOST_CELLS = 2**18
"""The most numbers that are compared at once, in several copies of 8 bytes each."""
_ROUNDING = 1e-13  # of the mean square: squared, what float32 rounds off
_EXAMPLE_DIGITS = 6


class LabelAgreement:
    """What the labels of two models have in common, over the same rows, for one output.

    Numbers are compared row by row. Classes (of models that answer one number for each) may have other
    numbers, as a vocabulary gives with new data: they are the same if each class of one is one class of the
    other.

    Args:
        of_classes: whether several answers to a row are those of classes, and not quantiles.
    """

    def __init__(self, *, of_classes: bool) -> None:
        self._of_classes = of_classes
        # For numbers, [6, values per row]: count, sum, squares, differences, their squares, fractions.
        self._sums: Array = np.zeros((6, 1))
        self._example: tuple[float, float, float] = (0.0, 0.0, 0.0)  # how far apart; candidate's, baseline's
        self._classes: Counter[tuple[float, float]] = Counter()
        self._widths: set[tuple[int, int]] = set()

    def add(self, candidate: Judged, baseline: Judged) -> None:
        """Compare the labels of a batch.

        Args:
            candidate: with the weights of the rows; of a row that weighs nothing the label does not count.
            baseline: the same rows.
        """
        if self._of_classes and min(candidate.answers.shape[1], baseline.answers.shape[1]) > 1:
            our_class, their_class = _classes_of(candidate), _classes_of(baseline)
            if our_class is not None and their_class is not None:
                both = np.stack([our_class, their_class], axis=1)
                pairs, many = np.unique(both[np.isfinite(both).all(axis=1)], axis=0, return_counts=True)
                self._classes.update(dict(zip(map(tuple, pairs.tolist()), many.tolist(), strict=True)))
                return
        widths = candidate.labels.shape[1], baseline.labels.shape[1]
        if len(set(widths)) > 1:
            self._widths.add(widths)
            return
        for ours, theirs in zip(_parts(candidate), _parts(baseline), strict=True):
            self._add_numbers(ours, theirs)

    def _add_numbers(self, ours: Array, theirs: Array) -> None:
        known = np.isfinite(ours) & np.isfinite(theirs)
        if not known.any():
            return
        ours, theirs = np.where(known, ours, 0.0), np.where(known, theirs, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = (ours - theirs) ** 2
            fractions = (ours % 1 != 0) | (theirs % 1 != 0)
            summed = (known, ours, ours**2, ours - theirs, apart, fractions)
            sums = [each.sum(axis=0) for each in summed]
        self._sums = self._sums + np.array(sums, np.float64)
        farthest = np.unravel_index(int(apart.argmax()), apart.shape)
        example = (float(apart[farthest]), float(ours[farthest]), float(theirs[farthest]))
        self._example = max(self._example, example)

    def merge(self, other: "LabelAgreement") -> None:
        """Add what another process found."""
        self._sums = self._sums + other._sums
        self._example = max(self._example, other._example)
        self._classes.update(other._classes)
        self._widths |= other._widths

    def require(self, label: str) -> None:
        """Check that the labels are the same.

        Raises:
            ComponentError: they are not; the message has no hint, as the engine adds the command that clears
                the baseline.
        """
        if words := self._difference():
            raise ComponentError(
                f"{label} of the last blessed model is another label than the candidate's, as after a change "
                f"of preprocessing_fn: {words}; the two cannot be compared"
            )

    def _difference(self) -> str:
        """Return in words what differs; empty: nothing that matters."""
        if self._widths:
            width, baselines = min(self._widths)
            return f"it has {baselines} numbers in a row, and the candidate's {width}"
        many, total, squares, difference, apart, fractions = self._sums
        variation = squares - total**2 / np.maximum(many, 1)
        most = np.where(fractions > 0, MOST_DIFFERENCE, MOST_OF_WHOLE_NUMBERS)
        moved = np.where(fractions > 0, difference**2 / np.maximum(many, 1), 0.0)
        if (apart - moved > most * variation + _ROUNDING * squares).any():
            _, ours, theirs = self._example
            return (
                f"it is {theirs:.{_EXAMPLE_DIGITS}g} in a row of the eval split where the candidate's is "
                f"{ours:.{_EXAMPLE_DIGITS}g}"
            )
        rows = self._classes.total()
        others = rows - _in_classes_of_both(self._classes)
        if others > MOST_DIFFERENCE * rows:
            return f"{others / rows:.1%} of the rows of the eval split are in no class that both have"
        return ""


def _parts(judged: Judged) -> Iterator[Array]:
    """Yield the labels that count, float64 [rows, values], a few rows at a time: a label may be an image."""
    rows, width = judged.labels.shape
    for start in range(0, rows, at_once := max(_MOST_CELLS // max(width, 1), 1)):
        part = slice(start, start + at_once)
        weights = None if judged.weights is None else judged.weights[part]
        few = Judged(judged.labels[part], judged.answers[part], weights)
        yield with_labels_that_count(few).labels.astype(np.float64)


def _classes_of(judged: Judged) -> Array | None:
    """Return the class of each row, [rows]; None: the labels are no classes."""
    found = []
    for labels in _parts(judged):
        classes = _class_of(labels)
        if classes is None:
            return None
        found.append(classes)
    return np.concatenate(found) if found else np.zeros(0)


def _class_of(labels: Array) -> Array | None:
    """Return the class of each row, [rows], of codes or one-hot rows; None: the labels are no classes."""
    if labels.shape[1] == 1:
        return labels[:, 0]
    ones = np.count_nonzero(labels == 1, axis=1)
    if (ones != np.count_nonzero(labels, axis=1)).any() or (ones > 1).any():
        return None
    return np.where(ones == 1, labels.argmax(axis=1), -1).astype(np.float64)


def _in_classes_of_both(pairs: Counter[tuple[float, float]]) -> int:
    """Return how many rows are in a class that is one class of the other model, too.

    Args:
        pairs: number of rows by their class for one model and for the other.
    """
    ours: dict[float, tuple[float, float]] = {}
    theirs: dict[float, tuple[float, float]] = {}
    for pair, _ in pairs.most_common():
        ours.setdefault(pair[0], pair)
        theirs.setdefault(pair[1], pair)
    return sum(many for pair, many in pairs.items() if ours[pair[0]] == pair == theirs[pair[1]])
