"""Finds out before a training whether a model takes batches of several lengths, and answers alike in all.

A model whose answer changes with the padding would be trained on other inputs than it is served with, where
all rows have the greatest length.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from slipway.components.errors import ComponentError
from slipway.components.trainer.buckets import KEY, ONE_SHAPE_ON_TPU
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.row_lengths import buckets_of
from slipway.components.trainer.user_model import build_model, describe

_RELATIVE, _ABSOLUTE = 1e-4, 1e-6
"""Differences of float32 answers that come from the order of a sum."""
_MASK = (
    "leave padding out: mask_zero=True in Embedding before a recurrent layer, or multiply by codes > 0 "
    "before a sum or a mean, as workloads/reviews/model.py does"
)


def require_bucketing_devices(devices: Devices) -> None:
    """Reject devices whose training step has one shape.

    Raises:
        ComponentError: it is TensorFlow's step on a TPU.
    """
    if devices.kind == "tpu" and devices.backend == "tensorflow":
        raise ComponentError(ONE_SHAPE_ON_TPU, hint="set train.backend to jax, or leave the key out")


def require_any_length(job: TrainingJob, rows: Mapping[str, Any]) -> None:
    """Build the model in float32 on the CPU, and compare its answers to rows of several lengths.

    Args:
        rows: a few, by feature, [rows, ...] with the columns' own lengths.

    Raises:
        ComponentError: the model takes one length only, has other weights for another, or its answers depend
            on the padding.
    """
    policy, distribution = keras.config.dtype_policy(), keras.distribution.distribution()
    keras.config.set_dtype_policy("float32")
    keras.distribution.set_distribution(None)
    try:
        with keras.device("cpu:0"):
            _compare(job, {name: np.asarray(rows[name]) for name in job.inputs})
    finally:
        keras.config.set_dtype_policy(policy)
        keras.distribution.set_distribution(distribution)
        keras.utils.set_random_seed(job.seed)  # as if nothing had been built


def _compare(job: TrainingJob, rows: Mapping[str, Any]) -> None:
    buckets = job.buckets
    named = ", ".join(buckets.lengths)
    served = build_model(job.model, job.inputs, job.hyperparameters)
    shortest = int(buckets_of(rows, buckets).max())
    short = {
        name: column[:, : buckets.lengths[name][shortest]] if name in buckets.lengths else column
        for name, column in rows.items()
    }
    try:
        model = build_model(job.model, job.trained_inputs, job.hyperparameters)
        answers = [_answers(model, each) for each in (rows, short)]
    except ComponentError:
        raise
    except Exception as error:  # the user's code, and all layers that it calls, may raise anything
        raise ComponentError(
            f"{KEY}: the model takes {named} of one length only: {describe(error, job.model)}",
            hint="let keras.Input(feature.shape) take the length None, and pool over it: no Flatten, no "
            "Reshape to a fixed size; or leave the key out",
        ) from error
    one, other = ([tuple(each.shape) for each in built.weights] for built in (model, served))
    if one != other:
        raise ComponentError(
            f"{KEY}: the model has other weights for batches of several lengths of {named} than for the "
            "length that it is served with",
            hint="take sizes of weights, such as the number of positions, from a hyperparameter instead of "
            "feature.shape",
        )
    for whole, cut in zip(*answers, strict=True):
        if whole.shape != cut.shape:
            raise ComponentError(
                f"{KEY}: the model's answers have the shape {whole.shape}, and {cut.shape} if padding is cut "
                f"off ({named})",
                hint="let the model answer once per row: pool over the length; or leave the key out",
            )
        if not (np.isfinite(whole).all() and np.isfinite(cut).all()):
            raise ComponentError(
                f"{KEY}: the model's answer to a row is not a finite number, with or without its padding "
                f"({named})",
                hint="look for a division by 0 or a logarithm of 0 where the model pools",
            )
        difference = np.abs(whole - cut)
        if (difference > _ABSOLUTE + _RELATIVE * np.abs(whole)).any():
            raise ComponentError(
                f"{KEY}: the model's answer to a row changes by {difference.max():.2g} if its padding is cut "
                f"off ({named})",
                hint=_MASK,
            )


def _answers(model: Any, rows: Mapping[str, Any]) -> list[Any]:
    answers = model({name: keras.ops.convert_to_tensor(column) for name, column in rows.items()})
    return [keras.ops.convert_to_numpy(each) for each in keras.tree.flatten(answers)]
