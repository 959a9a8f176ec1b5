"""Scores a reference model's predictions, mostly with Keras' metrics, in the same way as the Evaluator."""

import math
from collections.abc import Mapping

import numpy as np

from slipway.components.metrics.definitions import BY_CLASS, Metric
from slipway.components.metrics.row_values import MEANS, one_hot

_SETTINGS: dict[str, dict[str, object]] = {
    # With Keras' 200 thresholds, all answers of a model of rare events lie between two or three of them.
    "AUC": {"num_thresholds": 10_000},
    # Keras' default takes the highest output for a yes, so a single output would always be a yes.
    "F1Score": {"threshold": 0.5, "average": "micro"},
}
# Keras takes an answer below 0 for 0 here.
_OF_THE_EVALUATOR = ("MeanSquaredLogarithmicError",)


def scores(
    metrics: Mapping[str, str], answers: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
) -> dict[str, float]:
    """Return the metrics by name, except those without a value, such as a precision without any yes, the
    logarithm of a negative answer, or an infinite error, and errors of numbers where answers are of classes.

    Args:
        metrics: name -> Keras class.
        answers: [rows, 1], the probability of class 1 or a number, or [rows, classes].
        labels: [rows], class numbers or numbers; -1 is none of the classes.
        weights: [rows], the weight of each row; None: all rows count the same.
    """
    import keras

    found = {}
    for name, class_name in metrics.items():
        known = BY_CLASS[class_name]
        if known.outputs == "numbers" and answers.shape[1] > 1:
            continue  # the label is the number of a class here, and a vector for the model
        given, truth = _as_taken(known, answers, labels)
        counted = np.ones(len(labels)) if weights is None else weights
        wanted = truth > 0.5
        if known.skips_zeros:
            wanted = truth != 0
            counted = np.where(labels == 0, 0.0, counted)
        if not _has_value(known, wanted[counted > 0], given[counted > 0] > 0.5):
            continue
        if class_name in _OF_THE_EVALUATOR:
            found[name] = _mean(MEANS[class_name](truth, given), counted)
            continue
        config = {"name": name, **_SETTINGS.get(class_name, {})}
        metric = keras.metrics.get({"class_name": class_name, "config": config})
        metric.update_state(truth, given, sample_weight=counted.astype(np.float32))
        found[name] = float(np.mean(keras.ops.convert_to_numpy(metric.result())))
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _mean(terms: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean that the terms of `row_values`, [rows, 2], add up to; at weight 0 even infinity adds
    nothing."""
    counts = weights != 0
    part, whole = weights[counts] @ terms[counts]
    return float(part / whole) if whole else math.nan


def _has_value(metric: Metric, wanted: np.ndarray, answered: np.ndarray) -> bool:
    """Return True if what a metric divides by occurs among the labels and predictions, each a yes or no."""
    if metric.is_curve:
        return bool(wanted.any() and not wanted.all())
    if metric.skips_zeros:
        return bool(wanted.any())
    if metric.confusion is None or not metric.confusion.is_of_some_rows:
        return True
    cells = (wanted & answered, ~wanted & ~answered, ~wanted & answered, wanted & ~answered)
    return any(cell.any() for cell, many in zip(cells, metric.confusion.whole or (), strict=True) if many)


def _as_taken(metric: Metric, answers: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions and labels in a metric's form: labels as classes, or as yes or no for each."""
    of_classes = metric.outputs == "classes"
    if of_classes and answers.shape[1] == 1:
        answers = np.concatenate([1 - answers, answers], axis=1)
    classes = answers.shape[1]
    each = metric.is_of_each_class or (of_classes and metric.labels != "one")
    if classes > 1 and each:
        return answers, one_hot(labels[:, None], answers).astype(np.float32)
    return answers, labels[:, None]
