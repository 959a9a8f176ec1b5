"""The rows that one output of a model is judged by: labels, predictions, weights, groups. Pure."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.evaluator.request import QUANTILES, RANKS, ModelRequest, NotOursError, Request
from slipway.components.metrics.definitions import BY_CLASS

Array = Any


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


def with_labels_that_count(judged: Judged) -> Judged:
    """Return the rows with the label 0 where the weight is 0: such a row adds nothing, whatever its label."""
    if judged.weights is None:
        return judged
    return replace(judged, labels=np.where(judged.weights[:, None] == 0, 0, judged.labels))


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
    labels = with_labels_that_count(judged).labels
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
