"""All that training changes, taken out of a model as arrays and put back, on any backend."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from components.errors import ComponentError
from components.trainer.checkpoint import Arrays


def snapshot(model: Any) -> Arrays:
    """Copies of the weights, the seeds of Dropout and its like, and the optimizer's state, in fixed order."""
    _synchronise(model)
    return _copied(_variables(model))


def metrics_snapshot(model: Any) -> Arrays:
    """Copies of what the metrics have added up in this epoch."""
    _synchronise(model)
    return _copied(model.metrics_variables)


def restore(model: Any, arrays: Arrays) -> None:
    """Puts back what `snapshot` took.

    Raises:
        ComponentError: it is of another model.
    """
    model.optimizer.build(model.trainable_variables)
    _assign(_variables(model), arrays)


def build_metrics(model: Any, batch: tuple[Any, Any]) -> None:
    """Makes the metrics' variables, which Keras otherwise makes while it compiles the first step.

    Args:
        model: compiled, not yet trained by this process.
        batch: features and label.
    """
    # Where there are several replicas or another backend, fit makes them before its first epoch.
    if keras.backend.backend() == "tensorflow" and model.distribute_strategy.num_replicas_in_sync == 1:
        features, label = batch
        model.compute_metrics(features, label, model(features, training=False))


def restore_metrics(model: Any, arrays: Arrays) -> None:
    """Puts back what `metrics_snapshot` took.

    Raises:
        ComponentError: it is of other metrics.
    """
    _assign(model.metrics_variables, arrays)


def _variables(model: Any) -> list[Any]:
    return [*model.variables, *model.optimizer.variables]


def _synchronise(model: Any) -> None:
    # Within an epoch the JAX backend keeps the state outside the variables.
    if keras.backend.backend() == "jax":
        model.jax_state_sync()


def _copied(variables: Sequence[Any]) -> Arrays:
    # Copies: on a CPU the arrays may be the variables' own memory, which the next step writes to.
    return [np.array(keras.ops.convert_to_numpy(variable)) for variable in variables]


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
