"""Counts what the rows of a training weigh: refuses weights that are none, and balances classes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.input.parsing import parsed, records_of_all, wrong_examples
from slipway.components.trainer.job import BALANCED, TrainingJob

_PARSED_TOGETHER_ROWS = 4096
_MOST_CLASSES = 10_000


@dataclass
class _Weighed:
    """The rows of a split.

    Attributes:
        total: what they weigh together.
        classes: what the rows of each class weigh.
    """

    total: float = 0.0
    classes: dict[int, float] = field(default_factory=dict)


def weighed(job: TrainingJob) -> TrainingJob:
    """The job with its class weights as numbers; one pass over the files, and none where nothing is weighed.

    `balanced` gives every class of the train split the same total weight, and all rows together the weight
    that they have without it: a class weighs total / (classes * its own total), as in scikit-learn.

    Raises:
        ComponentError: a weight is negative or no number, all are 0, or a label is no class.
    """
    balances = job.class_weights == BALANCED
    if job.weight is None and not balances:
        return job
    if job.weight is not None and job.eval_files:
        _weigh(job, job.eval_files, "eval")
    found = _weigh(job, job.train_files, "train", by_class=balances)
    if not balances:
        return job
    present = {code: total for code, total in sorted(found.classes.items()) if total}
    share = found.total / len(present)
    return replace(job, class_weights={str(code): share / total for code, total in present.items()})


def told_weights(job: TrainingJob) -> str:
    """What the classes weigh, for people; "" where they weigh what they weigh."""
    weights = job.class_weights
    if not isinstance(weights, dict) or not weights:
        return ""
    return "classes weigh " + ", ".join(f"{code}: {weight:.4g}" for code, weight in weights.items())


def require_weights(values: npt.NDArray[np.float64], *, name: str, split: str) -> None:
    """Refuses weights that no mean can be made with.

    Args:
        values: [rows].
        name: of their column.
        split: that they are of.

    Raises:
        ComponentError: one is negative, infinite or no number.
    """
    is_wrong = ~(np.isfinite(values) & (values >= 0))
    if is_wrong.any():
        raise ComponentError(
            f"the weight {name} of a row of the {split} split is {values[is_wrong][0]:g}; weights are "
            "numbers from 0 on",
            hint="check transform.weight: what preprocessing_fn returns must be 0 or more in every row",
        )


def _weigh(job: TrainingJob, files: Sequence[str], split: str, *, by_class: bool = False) -> _Weighed:
    wanted = {job.weight, *(job.labels if by_class else ())}
    features: list[Feature] = [each for each in job.features if each.name in wanted]
    found = _Weighed()
    try:
        for columns in parsed(records_of_all(files), features, rows=_PARSED_TOGETHER_ROWS):
            rows = int(next(iter(columns.values())).shape[0])
            weights = np.ones(rows)
            if job.weight is not None:
                weights = columns[job.weight].numpy().astype(np.float64).reshape(-1)
                require_weights(weights, name=job.weight, split=split)
            found.total += float(weights.sum())
            if by_class:
                _add_classes(found.classes, columns[job.labels[0]].numpy().astype(np.float64), weights)
    except tf.errors.InvalidArgumentError as error:
        raise wrong_examples(error) from error
    if job.weight is not None and not found.total:
        raise ComponentError(
            f"the weight {job.weight} is 0 in every row of the {split} split",
            hint="check transform.weight, and what preprocessing_fn makes of it",
        )
    return found


def _add_classes(
    totals: dict[int, float], labels: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> None:
    codes = labels.argmax(-1).astype(np.float64) if labels.shape[-1] > 1 else labels[:, 0]
    different, places = np.unique(codes, return_inverse=True)
    is_class = (different >= 0) & (different == np.floor(different)) & (different < _MOST_CLASSES)
    if not is_class.all():
        raise ComponentError(
            "train.class_weights is balanced, but a label of the train split is "
            f"{different[~is_class][0]:g}, which is no class",
            hint="class weights are for labels 0, 1, 2, ...; leave train.class_weights out",
        )
    for code, total in zip(different.tolist(), np.bincount(places, weights=weights), strict=True):
        totals[int(code)] = totals.get(int(code), 0.0) + float(total)
