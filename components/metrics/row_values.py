"""The per-row terms of each metric, computed for a whole batch at once. Pure.

A metric's value is computed from sums over rows; the functions here return what each row adds to those sums.
They are the formulas of tf_keras 2.21 (`losses.py`, `metrics/`) and of TensorFlow Model Analysis 0.52
(`metrics/mean_regression_error.py`), which TFX's Evaluator computes, in the same precision: tf_keras uses
float32, in which a probability of 1 - 1e-7 is a different number than in float64, with a logarithm that is
off by a tenth.

`labels` is [rows, 1] or [rows, outputs], `answers` is [rows, outputs]; both as the model returns them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError

Array = Any  # of NumPy; arithmetic with scalars hides its type from the type checker
Floats = npt.NDArray[np.float64]
RowValues = Callable[[Array, Array], Floats]

# From tf_keras: `backend.epsilon()`, and the epsilon of `tf.linalg.l2_normalize`.
_EPSILON = np.float32(1e-7)
_NORM_EPSILON = np.float32(1e-12)
_TOP = 5
_CUT = 0.5


def one_hot(labels: Array, answers: Array) -> Array:
    """Return labels as wide as the answers: classes become one-hot, and -1 (a text that the labels'
    vocabulary does not hold) becomes zeros only.

    Raises:
        ComponentError: a label is not a class of the model.
    """
    classes = answers.shape[1]
    if labels.shape[1] == classes:
        return labels
    wanted = labels[:, 0]
    if not ((wanted >= -1) & (wanted < classes)).all():
        raise _outside(labels, classes)
    found = np.zeros((len(wanted), classes))  # not a square of the classes, of which there may be thousands
    rows = np.flatnonzero(wanted >= 0)
    found[rows, wanted[rows].astype(np.int64)] = 1.0
    return found


def confusion(labels: Array, answers: Array) -> Floats:
    """Return true positives, true negatives, false positives and false negatives at one half.

    They are summed over all classes.
    """
    wanted = shares(one_hot(labels, answers))
    above = answers > _CUT
    return np.stack(
        [
            np.where(above, wanted, 0).sum(1),
            np.where(above, 0, 1 - wanted).sum(1),
            np.where(above, 1 - wanted, 0).sum(1),
            np.where(above, 0, wanted).sum(1),
        ],
        axis=1,
    )


def shares(labels: Array) -> Floats:
    """Return labels as shares of a positive, 0 to 1.

    Raises:
        ComponentError: a label is outside of this range.
    """
    found: Floats = labels.astype(np.float64)
    outside = ~((found >= 0) & (found <= 1))
    if outside.any():
        raise ComponentError(
            f"a label of the eval split is {labels[outside][0]:g}, and a metric that counts positives needs "
            "labels from 0 to 1",
            hint="choose other metrics in evaluate.metrics, or check transform.label",
        )
    return found


def _outside(labels: Array, classes: int) -> ComponentError:
    wanted = labels.ravel()
    bad = wanted[~((wanted >= 0) & (wanted < classes))]
    return ComponentError(
        f"a label of the eval split is {bad[0]:g}, and the model has {classes} classes, 0 to {classes - 1}",
        hint="check transform.label, and the number of outputs of the model",
    )


def _mean(values: Array) -> Floats:
    """Return each row's value and a count of one, [rows, 2]."""
    return np.stack([values.astype(np.float64), np.ones(len(values))], axis=1)


def _keras(formula: Callable[[Array, Array], Array]) -> RowValues:
    """Wrap a formula as a mean over rows, computed in float32."""

    def values(labels: Array, answers: Array) -> Floats:
        with np.errstate(all="ignore"):
            return _mean(formula(labels.astype(np.float32), answers.astype(np.float32)))

    return values


def _accuracy(labels: Array, answers: Array) -> Array:
    return (labels == answers).mean(1)


def _binary_crossentropy(labels: Array, answers: Array) -> Array:
    shares(labels)  # of -1, say, the formula gives a loss that may be negative
    answers = _clip(answers, np.float32(1) - _EPSILON)
    found = labels * np.log(answers + _EPSILON) + (1 - labels) * np.log(1 - answers + _EPSILON)
    return -found.mean(1)


def _categorical_accuracy(labels: Array, answers: Array) -> Array:
    return _highest(labels) == _highest(answers)


def _sparse_categorical_accuracy(labels: Array, answers: Array) -> Array:
    return labels[:, 0] == _highest(answers)


def _categorical_hinge(labels: Array, answers: Array) -> Array:
    wanted = (labels * answers).sum(1)
    other = ((1 - labels) * answers).max(1)
    return np.maximum(other - wanted + 1, 0)


def _cosine_similarity(labels: Array, answers: Array) -> Array:
    return (_normal(labels) * _normal(answers)).sum(1)


def _kl_divergence(labels: Array, answers: Array) -> Array:
    labels, answers = _clip(labels, np.float32(1)), _clip(answers, np.float32(1))
    return (labels * np.log(labels / answers)).sum(1)


def _log_cosh_error(labels: Array, answers: Array) -> Array:
    x = answers - labels
    return (x + np.logaddexp(np.float32(0), -2 * x) - np.log(np.float32(2))).mean(1)


def _poisson(labels: Array, answers: Array) -> Array:
    return (answers - labels * np.log(answers + _EPSILON)).mean(1)


def _sparse_categorical_crossentropy(labels: Array, answers: Array) -> Array:
    wanted, classes = labels[:, 0].astype(np.int64), answers.shape[1]
    if not ((wanted >= 0) & (wanted < classes)).all():
        raise _outside(labels, classes)
    logs = np.log(_clip(answers, np.float32(1) - _EPSILON))
    highest = logs.max(1, keepdims=True)
    whole = np.log(np.exp(logs - highest).sum(1)) + highest[:, 0]
    return whole - logs[np.arange(len(logs)), wanted]


def _top(wanted: Array, answers: Array) -> Array:
    """Return True for rows with fewer than five classes more probable than the label's."""
    inside = (wanted >= 0) & (wanted < answers.shape[1])
    own = answers[np.arange(len(answers)), np.where(inside, wanted, 0)]
    return inside & np.isfinite(answers).all(1) & ((answers > own[:, None]).sum(1) < _TOP)


def _top_k_categorical_accuracy(labels: Array, answers: Array) -> Array:
    return _top(_highest(labels), answers)


def _sparse_top_k_categorical_accuracy(labels: Array, answers: Array) -> Array:
    return _top(labels[:, 0].astype(np.int64), answers)


def _clip(values: Array, most: np.float32) -> Array:
    return np.clip(values, _EPSILON, most)


def _highest(values: Array) -> Array:
    """Return the index of the highest value; NaN is never the highest."""
    return np.where(np.isnan(values), -np.inf, values).argmax(1)


def _normal(values: Array) -> Array:
    return values / np.sqrt(np.maximum((values * values).sum(1, keepdims=True), _NORM_EPSILON))


def _hinge(power: int) -> RowValues:
    """Build a hinge loss: sums for labels as they are (-1 and 1), sums for 0 and 1 taken as -1 and 1, and the
    number of labels that are neither 0 nor 1.

    tf_keras chooses between the two for each of its batches; here the choice is made for a whole slice.
    """

    def values(labels: Array, answers: Array) -> Floats:
        labels, answers = labels.astype(np.float32), answers.astype(np.float32)
        with np.errstate(all="ignore"):  # such as of an infinite answer to a row that weighs nothing
            as_they_are, as_signs = (
                (np.maximum(1 - each * answers, 0) ** power).mean(1) for each in (labels, 2 * labels - 1)
            )
        others = ((labels != 0) & (labels != 1)).sum(1)
        return np.stack([as_they_are, as_signs, others, np.ones(len(labels))], axis=1).astype(np.float64)

    return values


def _root_mean_squared_error(labels: Array, answers: Array) -> Floats:
    squares = (answers.astype(np.float32) - labels.astype(np.float32)) ** 2
    return np.stack([squares.sum(1, dtype=np.float64), np.full(len(squares), squares.shape[1])], axis=1)


def _error(formula: Callable[[Array, Array], Array]) -> RowValues:
    """Wrap a formula as a mean over all outputs of all rows, except where it is undefined."""

    def values(labels: Array, answers: Array) -> Floats:
        with np.errstate(all="ignore"):
            found = formula(one_hot(labels, answers), answers).astype(np.float64)
        is_known = ~np.isnan(found)
        return np.stack([np.where(is_known, found, 0).sum(1), is_known.sum(1)], axis=1)

    return values


def _percentage(labels: Array, answers: Array) -> Array:
    found: Array = np.where(labels == 0, np.nan, 100 * np.abs((labels - answers) / labels))
    return found


def _squared_logarithmic(labels: Array, answers: Array) -> Array:
    """Return squared errors of logarithms; infinite where only the answer has none.

    TensorFlow Model Analysis leaves such a row out, so that a model is the better the lower it answers where
    it is wrong.
    """
    found = (np.log(labels + 1) - np.log(answers + 1)).astype(np.float64) ** 2
    return np.where((answers < -1) & (labels >= -1), np.inf, found)


HINGES: dict[str, RowValues] = {"Hinge": _hinge(1), "SquaredHinge": _hinge(2)}

MEANS: dict[str, RowValues] = {
    "Accuracy": _keras(_accuracy),
    "BinaryCrossentropy": _keras(_binary_crossentropy),
    "CategoricalAccuracy": _keras(_categorical_accuracy),
    "CategoricalHinge": _keras(_categorical_hinge),
    "CosineSimilarity": _keras(_cosine_similarity),
    "KLDivergence": _keras(_kl_divergence),
    "LogCoshError": _keras(_log_cosh_error),
    "MeanAbsoluteError": _error(lambda labels, answers: np.abs(labels - answers)),
    "MeanAbsolutePercentageError": _error(_percentage),
    "MeanSquaredError": _error(lambda labels, answers: (labels - answers).astype(np.float64) ** 2),
    "MeanSquaredLogarithmicError": _error(_squared_logarithmic),
    "Poisson": _keras(_poisson),
    "RootMeanSquaredError": _root_mean_squared_error,
    "SparseCategoricalAccuracy": _keras(_sparse_categorical_accuracy),
    "SparseCategoricalCrossentropy": _keras(_sparse_categorical_crossentropy),
    "SparseTopKCategoricalAccuracy": _keras(_sparse_top_k_categorical_accuracy),
    "TopKCategoricalAccuracy": _keras(_top_k_categorical_accuracy),
}
"""Metric classes that are a sum divided by another; the root mean squared error before taking the root."""


def of_quantiles(levels: Sequence[float]) -> dict[str, RowValues]:
    """Return the metrics of models that predict quantiles of the label; each is a mean.

    Args:
        levels: of the quantiles, ascending, 0 to 1; one for each answer of a row.
    """
    above = np.array(levels)

    def pinball(labels: Array, answers: Array) -> Floats:
        missed = labels.astype(np.float64) - answers
        return _mean(np.maximum(above * missed, (above - 1) * missed).mean(1))

    def coverage(labels: Array, answers: Array) -> Floats:
        label = labels[:, 0]
        return _known((answers.min(1) <= label) & (label <= answers.max(1)), labels, answers)

    return {
        "IntervalCoverage": coverage,
        # From the lowest to the highest answer, as in the coverage, in whatever order a model gives them.
        "IntervalWidth": lambda _labels, answers: _mean(answers.max(1).astype(np.float64) - answers.min(1)),
        "PinballLoss": pinball,
        "QuantileCrossing": lambda _labels, answers: _known((np.diff(answers, axis=1) < 0).any(1), answers),
    }


def _known(values: Array, *of: Array) -> Floats:
    """Return each row's value, NaN where an array in `of` is NaN, and a count of one."""
    unknown = np.any([np.isnan(each).any(1) for each in of], axis=0)
    return _mean(np.where(unknown, np.nan, values))
