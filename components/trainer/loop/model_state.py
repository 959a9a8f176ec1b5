"""All that training changes, taken out of a model as arrays and put back, on any backend."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.checkpoint import Arrays


def snapshot(model: Any) -> Arrays:
    """Copies of the weights, the seeds of Dropout and its like, and the optimizer's state, in fixed order."""
    _synchronise(model)
    return _copied(_variables(model))


def metrics_snapshot(model: Any) -> Arrays:
    """Copies of the metrics' state in this epoch."""
    _synchronise(model)
    return _copied(model.metrics_variables)


def restore(model: Any, arrays: Arrays) -> None:
    """Puts back what `snapshot` took.

    Raises:
        ComponentError: it is of another model.
    """
    model.optimizer.build(model.trainable_variables)
    _assign(_variables(model), arrays)


def build_metrics(model: Any, batch: tuple[Any, ...]) -> None:
    """Makes the metrics' variables, which Keras otherwise makes while it compiles the first step.

    Args:
        model: compiled, not yet trained by this process.
        batch: features, label, and what the rows weigh where they weigh differently.
    """
    # Where there are several replicas or another backend, fit makes them before its first epoch.
    if keras.backend.backend() == "tensorflow" and model.distribute_strategy.num_replicas_in_sync == 1:
        features, label, *weight = batch
        model.compute_metrics(features, label, model(features, training=False), *weight)


def restore_metrics(model: Any, arrays: Arrays) -> None:
    """Puts back what `metrics_snapshot` took.

    Raises:
        ComponentError: it is of other metrics.
    """
    _assign(model.metrics_variables, arrays)


def take_over(model: Any, other: Any) -> None:
    """Gives a model the values of all variables of another of the same kind, but for the optimizer's."""
    _synchronise(other)
    _assign(model.variables, _copied(other.variables))


def _variables(model: Any) -> list[Any]:
    return [*model.variables, *model.optimizer.variables]


def _synchronise(model: Any) -> None:
    # Within an epoch the JAX backend keeps the state outside the variables.
    if keras.backend.backend() == "jax":
        model.jax_state_sync()


def _copied(variables: Sequence[Any]) -> Arrays:
    return [_whole(variable) for variable in variables]


def _whole(variable: Any) -> npt.NDArray[Any]:
    """A copy of a variable's value."""
    value = variable.value
    if getattr(value, "is_fully_addressable", True) or value.is_fully_replicated:
        # On a CPU the array may be the variable's own memory, which the next step writes to.
        return np.array(keras.ops.convert_to_numpy(variable))
    # Divided, with JAX on several hosts: this one's devices hold all parts, see `with_jax.require_layout`.
    whole = np.empty(value.shape, value.dtype)
    for part in value.addressable_shards:
        whole[part.index] = part.data
    return whole


def _assign(variables: Sequence[Any], arrays: Arrays) -> None:
    if [tuple(variable.shape) for variable in variables] != [values.shape for values in arrays]:
        raise ComponentError(
            "the checkpoint does not fit the model that build_model returns now",
            hint="remove the checkpoints to train from the beginning",
        )
    for variable, values in zip(variables, arrays, strict=True):
        # NumPy's files know no bfloat16, and give back plain bytes.
        dtype = keras.ops.convert_to_numpy(variable).dtype
        variable.assign(values.view(dtype) if values.dtype.kind == "V" else values)
