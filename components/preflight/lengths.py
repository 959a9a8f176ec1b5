"""Judges a model that is to be trained on batches of several lengths, `train.input.bucket_by_length`.

The rules are those of the training itself, `trainer.any_length`, which refuses such a model when it starts.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.preflight.model_traits import with_all_arrays
from slipway.components.preflight.question_and_answer import Question, Trait
from slipway.components.preflight.training_step import TrainingStep
from slipway.components.trainer.any_length import (
    change_by_padding,
    model_of_any_length,
    require_one_answer_a_row,
)
from slipway.components.trainer.buckets import KEY, Buckets
from slipway.components.trainer.features import Feature
from slipway.components.trainer.trace_error import explain

MOST_WEIGHTS = 2**26
"""A model with more weights is not asked for answers, which would need arrays: 256 MiB, twice."""


@dataclass(frozen=True)
class BucketedModel:
    """The question's model as `any_length.AskedModel`.

    Attributes:
        inputs: the features by name, without the label.
    """

    model: str
    hyperparameters: Mapping[str, object]
    inputs: Mapping[str, Feature]
    buckets: Buckets


def judge_lengths(
    served: Any, features: Mapping[str, Feature], question: Question, mesh: Any, buckets: Buckets
) -> Iterator[Trait]:
    """Trace the step for the batches of each length, and yield a trait if padding changes the answers.

    Args:
        served: the model, built for the columns' own lengths.
        features: by name, including the label.
        buckets: of one column at least.

    Raises:
        ComponentError: the model takes one length only, or has other weights or shapes of answers for
            another.
    """
    inputs = {name: each for name, each in features.items() if name not in question.labels}
    asked = BucketedModel(question.model, question.hyperparameters, inputs, buckets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same layers under other names: of the first ones, all was told
        model = model_of_any_length(asked, served)
        require_one_answer_a_row(asked, model)
        for bucket in range(buckets.count - 1):
            of_bucket = {**features, **buckets.features(inputs, bucket)}
            with _told_of(buckets.named(bucket), question.model):
                TrainingStep(model, of_bucket, question, mesh).traced(question.batch_size)
        rows = made_up_rows(inputs, buckets)
        if rows is None or served.count_params() > MOST_WEIGHTS:
            return
        with with_all_arrays():
            change = change_by_padding(asked, rows)
    if change > 0:
        yield Trait(kind="padding_counts", where=", ".join(buckets.lengths), detail=f"{change:.2g}")


@contextmanager
def _told_of(bucket: str, dotted_path: str) -> Iterator[None]:
    """Say of which batches an error is; the user's code, and all that it calls, may raise anything."""
    try:
        yield
    except Exception as error:
        told = explain(error, dotted_path)
        raise ComponentError(f"{KEY}: with {bucket}: {told.message}", hint=told.remedy) from error


def made_up_rows(inputs: Mapping[str, Feature], buckets: Buckets) -> dict[str, npt.NDArray[Any]] | None:
    """Return two rows whose values fill the first bucket and half of it, and whose other values are padding.

    Args:
        inputs: the features by name, without the label.

    Returns:
        By feature, [2, ...]; None if a feature is not bucketed: it may say how long a row is.
    """
    if set(inputs) != set(buckets.lengths) or any(each.categories == 1 for each in inputs.values()):
        return None
    rows = {}
    for name, feature in inputs.items():
        column = np.zeros((2, *feature.shape), "float32" if feature.dtype == "float32" else "int32")
        for row, length in enumerate((buckets.lengths[name][0], max(1, buckets.lengths[name][0] // 2))):
            values = np.arange(column[row, :length].size).reshape(column[row, :length].shape)
            if feature.dtype == "float32":
                column[row, :length] = 0.1 + values % 7 / 7
            else:  # 1 is the one code that all have, whose number of categories is not known
                column[row, :length] = 1 + values % ((feature.categories or 2) - 1)
        rows[name] = column
    return rows
