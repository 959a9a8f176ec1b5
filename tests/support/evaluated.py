"""Scores answers as the Evaluator measures them over all rows, with the statistics of the labels."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.metric_values import results
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import METRICS
from slipway.components.model_gate.trivial_scores import LabelStatistics

Array = npt.NDArray[Any]


def evaluated(
    metric: str, labels: Array, answers: Array, *, weights: Array | None = None
) -> tuple[float, LabelStatistics | None]:
    """The value of a metric and the labels' statistics."""
    model = ModelRequest("", "label", is_baseline=False, weight="" if weights is None else "weight")
    asked = Request((model,), ((),), {metric: METRICS[metric].class_name}, label_statistics=True)
    tally = Tally(asked)
    tally.add({}, [Judged(labels, answers, weights)], first=0)
    found = {name: value for (_, name), value in results(asked, tally)[()].items()}
    return found[metric], LabelStatistics.from_metrics(found)


def best_of(
    metric: str, labels: Array, constants: Iterable[Any], *, weights: Array | None = None
) -> tuple[float, LabelStatistics | None]:
    """The best value of any of the constant answers, and the labels' statistics."""
    found = [
        evaluated(metric, labels, np.tile(np.array(each, np.float32), (len(labels), 1)), weights=weights)
        for each in constants
    ]
    best = max if METRICS[metric].better == "higher" else min
    return best(value for value, _ in found), found[0][1]


def weighed(
    positives: int, negatives: int, *, of_positives: float = 1.0, of_negatives: float = 1.0
) -> LabelStatistics:
    """The statistics of labels of so many rows, all of a class with one weight."""
    counts = {1: positives * of_positives, 0: negatives * of_negatives}
    squares = {1: positives * of_positives**2, 0: negatives * of_negatives**2}
    return LabelStatistics.of_counts(counts, squares=squares, count=positives + negatives)
