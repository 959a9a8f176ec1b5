"""Scores a reference model's answers with Keras' metrics, in the same way as the Evaluator."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_PERCENTAGE = "MeanAbsolutePercentageError"
# Keras' default takes the highest output for a yes, so a single output would always be a yes.
_SETTINGS = {"F1Score": {"threshold": 0.5, "average": "micro"}}
_Yes = np.ndarray
# What must occur among labels and answers for a metric to have a value.
_NEEDS: dict[str, Callable[[_Yes, _Yes], bool]] = {
    "AUC": lambda wanted, _: bool(wanted.any() and not wanted.all()),
    "F1Score": lambda wanted, answered: bool(wanted.any() or answered.any()),
    "Precision": lambda _, answered: bool(answered.any()),
    "Recall": lambda wanted, _: bool(wanted.any()),
    _PERCENTAGE: lambda wanted, _: bool(wanted.any()),
}
_OF_EACH_CLASS = {
    *("AUC", "F1Score", "Precision", "Recall"),
    *("FalseNegatives", "FalsePositives", "TrueNegatives", "TruePositives"),
}


def scores(
    metrics: Mapping[str, str], answers: np.ndarray, labels: np.ndarray, weights: np.ndarray | None
) -> dict[str, float]:
    """Return the metrics by name, except those without a value, such as a precision without any yes.

    Args:
        metrics: name -> Keras class.
        answers: [rows, 1], the probability of class 1 or a number, or [rows, classes].
        labels: [rows], class numbers or numbers; -1 is none of the classes.
        weights: [rows], the weight of each row; None: all rows count the same.
    """
    import keras

    found = {}
    for name, class_name in metrics.items():
        given, truth = _as_taken(class_name, answers, labels)
        counted = np.ones(len(labels)) if weights is None else weights
        wanted = truth > 0.5
        if class_name == _PERCENTAGE:  # undefined for labels that are 0
            wanted = truth != 0
            counted = np.where(labels == 0, 0.0, counted)
        if class_name in _NEEDS and not _NEEDS[class_name](wanted[counted > 0], given[counted > 0] > 0.5):
            continue
        config: dict[str, Any] = {"name": name, **_SETTINGS.get(class_name, {})}
        metric = keras.metrics.get({"class_name": class_name, "config": config})
        metric.update_state(truth, given, sample_weight=counted.astype(np.float32))
        found[name] = float(np.mean(keras.ops.convert_to_numpy(metric.result())))
    return found


def _as_taken(class_name: str, answers: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return answers and labels in a metric's form: labels as classes, or as a yes or no for each class."""
    of_classes = "Categorical" in class_name
    if of_classes and answers.shape[1] == 1:
        answers = np.concatenate([1 - answers, answers], axis=1)
    classes = answers.shape[1]
    each = class_name in _OF_EACH_CLASS or (of_classes and not class_name.startswith("Sparse"))
    if classes > 1 and each:
        return answers, np.eye(classes + 1, dtype=np.float32)[labels.astype(int)][:, :-1]
    return answers, labels[:, None]
