"""Sums the weights of the training rows, rejects invalid ones, and balances classes."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.input.parsing import parsed_once
from slipway.components.trainer.job import BALANCED, MOST_CLASSES, TrainingJob

_SHOWN_CLASSES = 10
_FAR_FROM_ONE = 2.0
"""A mean weight this many times above or below 1 is reported."""


@dataclass
class _Weighed:
    """The total weights of a split.

    Attributes:
        total: the weight of all rows together.
        classes: the weight of the rows of each class.
    """

    rows: int = 0
    total: float = 0.0
    classes: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class WeighedJob:
    """A job whose class weights are numbers.

    Attributes:
        mean: the mean weight of its rows, without class weights; 1 if rows have no weights.
    """

    job: TrainingJob
    mean: float = 1.0

    @property
    def class_words(self) -> str:
        """Description of the class weights; "" if there are none."""
        weights = self.job.class_weights
        if not isinstance(weights, dict) or not weights:
            return ""
        return "classes weigh " + ", ".join(f"{code}: {weight:.4g}" for code, weight in weights.items())

    @property
    def mean_words(self) -> str:
        """Description of what a mean weight far from 1 does to a network's loss; "" if it is near 1."""
        if 1 / _FAR_FROM_ONE <= self.mean <= _FAR_FROM_ONE:
            return ""
        return (
            f"the weight {self.job.weight} is {self.mean:.4g} on average, which scales Keras' losses and "
            "their gradients by as much; divide it by its mean, or compile with a loss "
            'whose reduction is "mean_with_sample_weight"'
        )


def weighed(job: TrainingJob) -> WeighedJob:
    """Return the job with its class weights as numbers; reads the files once, or not at all without weights.

    `balanced` gives every class of the train split the same total weight, and all rows together the weight
    that they have without it: the factor of a class is total / (classes * its own total), as in scikit-learn.

    Raises:
        ComponentError: a weight is negative or not a number, all are 0, a label is not a class, or a weighted
            class has no row in the train split.
    """
    by_class = bool(job.class_weights)
    if job.weight is None and not by_class:
        return WeighedJob(job)
    if job.weight is not None and job.eval_files:
        _weigh(job, job.eval_files, "eval")
    found = _weigh(job, job.train_files, "train", by_class=by_class)
    mean = found.total / found.rows if job.weight is not None else 1.0
    if job.class_weights == BALANCED:
        present = {code: total for code, total in sorted(found.classes.items()) if total}
        share = found.total / len(present)
        job = replace(job, class_weights={str(code): share / total for code, total in present.items()})
    elif by_class:
        _require_classes(job.class_weights or (), found.classes)
    return WeighedJob(job, mean)


def _require_classes(named: Iterable[str], found: Collection[int]) -> None:
    if absent := [code for code in named if int(code) not in found]:
        more = ", ..." if len(found) > _SHOWN_CLASSES else ""
        there = ", ".join(map(str, sorted(found)[:_SHOWN_CLASSES]))
        raise ComponentError(
            f"train.class_weights weighs the class {absent[0]}, but no row of the train split has this "
            f"label; there are: {there}{more}",
            hint="remove it there, or check the codes that preprocessing_fn gives the classes "
            "(transform.classes names them in their order)",
        )


def require_weights(values: npt.NDArray[np.float64], *, name: str, split: str) -> None:
    """Reject weights that have no mean.

    Args:
        values: [rows].
        name: of their column.
        split: the name of their split.

    Raises:
        ComponentError: a weight is negative, infinite or not a number.
    """
    is_wrong = ~(np.isfinite(values) & (values >= 0))
    if is_wrong.any():
        raise ComponentError(
            f"the weight {name} of a row of the {split} split is {values[is_wrong][0]:g}; weights "
            "must be finite and >= 0",
            hint="check transform.weight: what preprocessing_fn returns must be 0 or more in every row",
        )


def require_weights_on_both_sides(
    values: npt.NDArray[Any], held: npt.NDArray[np.int64], *, name: str
) -> None:
    """Reject rows held out for `train.early_stopping`, or left, of which none weighs anything.

    The loss of such rows is 0 in each epoch: the first one would be the best.

    Args:
        values: the weights of all rows of the train split, [rows, 1].
        held: the numbers of the rows that are held out.
        name: of their column.

    Raises:
        ComponentError: all weights of one of the two are 0.
    """
    is_held = np.zeros(len(values), bool)
    is_held[held] = True
    weighs = values.reshape(-1) != 0
    for part, where, advice in (
        (is_held, "that train.early_stopping holds out, so nothing could be measured", "raise"),
        (~is_held, "that train.early_stopping leaves, so nothing could be learned", "lower"),
    ):
        if not weighs[part].any():
            raise ComponentError(
                f"the weight {name} is 0 in all {part.sum():,} of {len(values):,} rows of the train split "
                f"{where}",
                hint=f"{advice} train.early_stopping.share, or set train.early_stopping.patience to null",
            )


def _weigh(job: TrainingJob, files: Sequence[str], split: str, *, by_class: bool = False) -> _Weighed:
    wanted = {job.weight, *(job.labels if by_class else ())}
    features: list[Feature] = [each for each in job.features if each.name in wanted]
    found = _Weighed()
    for columns in parsed_once(files, features):
        rows = int(next(iter(columns.values())).shape[0])
        weights = np.ones(rows)
        if job.weight is not None:
            weights = columns[job.weight].numpy().astype(np.float64).reshape(-1)
            require_weights(weights, name=job.weight, split=split)
        found.rows += rows
        found.total += float(weights.sum())
        if by_class:
            _add_classes(found.classes, columns[job.labels[0]].numpy().astype(np.float64), weights)
    if job.weight is not None and not found.total:
        raise ComponentError(
            f"the weight {job.weight} is 0 in every row of the {split} split",
            hint="check transform.weight, and what preprocessing_fn returns for it",
        )
    return found


def _add_classes(
    totals: dict[int, float], labels: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> None:
    counts = weights != 0  # the label of another row may be anything
    if labels.shape[-1] > 1:
        is_class = np.isclose(labels.sum(-1), 1, atol=1e-3)
        if not is_class[counts].all():
            raise ComponentError(
                "train.class_weights weighs the classes of one label, but a row of the train split has none "
                "of them, or several",
                hint="a row may have several labels at once; remove train.class_weights, and weight rows "
                "with transform.weight",
            )
        codes = labels.argmax(-1).astype(np.float64)
    else:
        codes = labels[:, 0]
        is_class = (codes >= 0) & (codes == np.floor(codes)) & (codes < MOST_CLASSES)
        if (wrong := codes[counts & ~is_class]).size:
            raise ComponentError(
                f"train.class_weights is given, but a label of the train split is {wrong.min():g}, "
                "which is not a class",
                hint="class weights are for labels 0, 1, 2, ...; leave train.class_weights out",
            )
    different, places = np.unique(codes[is_class], return_inverse=True)
    for code, total in zip(different.tolist(), np.bincount(places, weights=weights[is_class]), strict=True):
        totals[int(code)] = totals.get(int(code), 0.0) + float(total)
