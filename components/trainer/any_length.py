"""Finds out before a training whether a model takes batches of several lengths, and answers alike in all.

The preflight asks the same functions before the training is paid for.

A model whose answer changes with the padding would be trained on other inputs than it is served with, where
all rows have the greatest length.
"""

import math
from collections.abc import Mapping
from typing import Any, Protocol

import keras
import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.buckets import KEY, MASK, Buckets
from slipway.components.trainer.device_rules import require_one_shape
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.features import Feature
from slipway.components.trainer.job import TrainingJob
from slipway.components.trainer.row_lengths import buckets_of
from slipway.components.trainer.user_model import build_model, describe

_RELATIVE, _ABSOLUTE = 1e-4, 1e-6
"""Differences of float32 answers that come from the order of a sum."""


def require_bucketing_devices(devices: Devices) -> None:
    """Reject devices whose training step has one shape.

    Raises:
        ComponentError: it is TensorFlow's step on a TPU.
    """
    require_one_shape(backend=devices.backend, kind=devices.kind)


class AskedModel(Protocol):
    """A model that is to be trained on batches of several lengths, such as that of a `TrainingJob`."""

    @property
    def model(self) -> str:
        """The dotted path of `build_model`."""

    @property
    def hyperparameters(self) -> Mapping[str, object]:
        """The arguments of `build_model`."""

    @property
    def inputs(self) -> Mapping[str, Feature]:
        """The features by name, with the columns' own lengths."""

    @property
    def buckets(self) -> Buckets:
        """The lengths of the batches."""


def require_any_length(job: TrainingJob, rows: Mapping[str, npt.NDArray[Any]]) -> None:
    """Build the model in float32 on the CPU, and compare its answers to rows of several lengths.

    Args:
        rows: a few, by feature, [rows, ...] with the columns' own lengths.

    Raises:
        ComponentError: the model takes one length only, has other weights for another, or its answers depend
            on the padding.
    """
    named = ", ".join(job.buckets.lengths)
    try:
        change = change_by_padding(job, rows)
    finally:
        keras.utils.set_random_seed(job.seed)  # as if nothing had been built
    if math.isnan(change):
        raise ComponentError(
            f"{KEY}: the model's answer to a row is not a finite number, with or without its padding "
            f"({named})",
            hint="look for a division by 0 or a logarithm of 0 where the model pools",
        )
    if change:
        raise ComponentError(
            f"{KEY}: the model's answer to a row changes by {change:.2g} if its padding is cut off ({named})",
            hint=MASK,
        )


def change_by_padding(asked: AskedModel, rows: Mapping[str, npt.NDArray[Any]]) -> float:
    """Return by how much the model's answers change if the rows' padding is cut off: in float32, on the CPU.

    Args:
        rows: as in `require_any_length`.

    Returns:
        The largest change of an output that changes; 0 if none does, NaN if one is not a finite number.

    Raises:
        ComponentError: the model takes one length only, or has other weights or shapes of answers for
            another.
    """
    policy, distribution = keras.config.dtype_policy(), keras.distribution.distribution()
    keras.config.set_dtype_policy("float32")
    keras.distribution.set_distribution(None)
    try:
        with keras.device("cpu:0"):
            return _change(asked, {name: np.asarray(rows[name]) for name in asked.inputs})
    finally:
        keras.config.set_dtype_policy(policy)
        keras.distribution.set_distribution(distribution)


def _change(asked: AskedModel, rows: Mapping[str, npt.NDArray[Any]]) -> float:
    buckets = asked.buckets
    model = model_of_any_length(asked, build_model(asked.model, asked.inputs, asked.hyperparameters))
    shortest = int(buckets_of(rows, buckets).max())
    short = {
        name: column[:, : buckets.lengths[name][shortest]] if name in buckets.lengths else column
        for name, column in rows.items()
    }
    try:
        whole_answers, cut_answers = (_answers(model, each) for each in (rows, short))
    except Exception as error:  # the user's code, and all layers that it calls, may raise anything
        raise _of_one_length(asked, error) from error
    for whole, cut in zip(whole_answers, cut_answers, strict=True):
        _require_equal_shapes(asked, whole.shape, cut.shape)
        if not (np.isfinite(whole).all() and np.isfinite(cut).all()):
            return math.nan
        difference = np.abs(whole - cut)
        if (difference > _ABSOLUTE + _RELATIVE * np.abs(whole)).any():
            return float(difference.max())
    return 0.0


def model_of_any_length(asked: AskedModel, served: Any) -> Any:
    """Build the model for batches of any length, and return it.

    Args:
        served: the same model, built for the columns' own lengths.

    Raises:
        ComponentError: the model takes one length only, or has other weights than `served`.
    """
    try:
        model = build_model(asked.model, asked.buckets.any_length(asked.inputs), asked.hyperparameters)
    except ComponentError:
        raise
    except Exception as error:  # the user's code, and all layers that it calls, may raise anything
        raise _of_one_length(asked, error) from error
    one, other = ([tuple(each.shape) for each in built.weights] for built in (model, served))
    if one != other:
        named = ", ".join(asked.buckets.lengths)
        raise ComponentError(
            f"{KEY}: the model has other weights for batches of several lengths of {named} than for the "
            "length that it is served with",
            hint="take sizes of weights, such as the number of positions, from a hyperparameter instead of "
            "feature.shape",
        )
    return model


def require_one_answer_a_row(asked: AskedModel, model: Any) -> None:
    """Call a model with the shapes of each bucket. Nothing is computed.

    Args:
        model: as `model_of_any_length` returns it.

    Raises:
        ComponentError: it does not take one of them, or the shape of its answers depends on the length.
    """
    last = asked.buckets.count - 1
    whole, *others = (_shapes(asked, model, bucket) for bucket in (last, *range(last)))
    for shapes in others:
        for one, other in zip(whole, shapes, strict=True):
            _require_equal_shapes(asked, one, other)


def _shapes(asked: AskedModel, model: Any, bucket: int) -> list[tuple[int | None, ...]]:
    features = asked.buckets.features(asked.inputs, bucket)
    tensors = {name: keras.KerasTensor((None, *f.shape), f.model_dtype) for name, f in features.items()}
    try:
        return [tuple(each.shape) for each in keras.tree.flatten(model(tensors))]
    except Exception as error:  # the user's code, and all layers that it calls, may raise anything
        raise ComponentError(
            f"{KEY}: the model does not take {asked.buckets.named(bucket)}: {describe(error, asked.model)}",
            hint="greater lengths; or leave the key out",
        ) from error


def _of_one_length(asked: AskedModel, error: Exception) -> ComponentError:
    named = ", ".join(asked.buckets.lengths)
    return ComponentError(
        f"{KEY}: the model takes {named} of one length only: {describe(error, asked.model)}",
        hint="let keras.Input(feature.shape) take the length None, and pool over it: no Flatten, no "
        "Reshape to a fixed size; or leave the key out",
    )


def _require_equal_shapes(asked: AskedModel, whole: Any, cut: Any) -> None:
    if whole != cut:
        raise ComponentError(
            f"{KEY}: the model's answers have the shape {whole}, and {cut} if padding is cut off "
            f"({', '.join(asked.buckets.lengths)})",
            hint="let the model answer once per row: pool over the length; or leave the key out",
        )


def _answers(model: Any, rows: Mapping[str, npt.NDArray[Any]]) -> list[Any]:
    answers = model({name: keras.ops.convert_to_tensor(column) for name, column in rows.items()})
    return [keras.ops.convert_to_numpy(each) for each in keras.tree.flatten(answers)]
