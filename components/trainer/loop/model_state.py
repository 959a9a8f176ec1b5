"""Copies everything that training changes out of a model as arrays, and back, on any backend."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.checkpoint_files import Arrays
from slipway.components.trainer.learning_rate import optimizers_of, scheduled_rate


def snapshot(model: Any) -> Arrays:
    """Return copies of weights, seeds (of Dropout and the like) and optimizer state, in a fixed order."""
    _synchronise(model)
    return _copied(_variables(model))


def metrics_snapshot(model: Any) -> Arrays:
    """Return copies of the metrics' state in this epoch."""
    _synchronise(model)
    return _copied(model.metrics_variables)


def restore(model: Any, arrays: Arrays) -> None:
    """Restore what `snapshot` took.

    Raises:
        ComponentError: the arrays belong to another model.
    """
    build_optimizer(model)
    optimizers = optimizers_of(model)
    if len(arrays) == len(_variables(model)) - len(optimizers) and scheduled_rate(model) is None:
        # Saved with a schedule that a callback had put in the rate's place, as one that counts all steps.
        for each in optimizers:
            each.learning_rate = _ToBeSetAgain()
    _assign(_variables(model), arrays)


class _ToBeSetAgain(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
    """Stands for a schedule that a callback sets when a training begins, and that no checkpoint holds."""

    def __call__(self, step: Any) -> float:
        """Return 0: nothing is learned by it, see `require_schedule`."""
        return 0.0

    def get_config(self) -> dict[str, object]:
        """Return the configuration that Keras would save: none."""
        return {}


def require_schedule(model: Any) -> None:
    """Reject a resumed training whose learning rate was a schedule, which nothing has set again.

    Raises:
        ComponentError: it is one.
    """
    if isinstance(scheduled_rate(model), _ToBeSetAgain):
        raise ComponentError(
            "the checkpoint was saved with a schedule in place of the model's learning rate, and no callback "
            "has set it again",
            hint="set it in on_train_begin, which is called in a resumed training, too; or remove the "
            "checkpoints to train from the beginning",
        )


def build_optimizer(model: Any) -> None:
    """Create the optimizer's variables if they are not there yet.

    A LossScaleOptimizer, as under mixed_float16, would create its own once more.
    """
    if not model.optimizer.built:
        # TensorFlow makes the variables of several devices, or of a TPU, in their scope alone.
        is_tensorflow = keras.backend.backend() == "tensorflow"
        with model.distribute_strategy.scope() if is_tensorflow else nullcontext():
            model.optimizer.build(model.trainable_variables)


def averages_weights(model: Any) -> bool:
    """Return True if the end of Keras' fit replaces the weights by their moving averages."""
    return any(getattr(each, "use_ema", False) for each in optimizers_of(model))


def build_metrics(model: Any, batch: tuple[Any, ...]) -> None:
    """Create the metrics' variables, which Keras otherwise creates while it compiles the first step.

    Args:
        model: compiled, not yet trained by this process.
        batch: features, label, and the weights of the rows if they have any.
    """
    # With several replicas or another backend, fit creates them before its first epoch.
    if keras.backend.backend() == "tensorflow" and model.distribute_strategy.num_replicas_in_sync == 1:
        features, label, *weight = batch
        answers = model(features, training=False)
        model.compute_metrics(features, label, answers, *weight)
        if (loss := model._compile_loss) is not None and not loss.built:
            loss(label, answers, *weight)  # makes the means of each output's loss


def restore_metrics(model: Any, arrays: Arrays) -> None:
    """Restore what `metrics_snapshot` took.

    Raises:
        ComponentError: the arrays belong to other metrics.
    """
    _assign(model.metrics_variables, arrays)


def take_over(model: Any, other: Any) -> None:
    """Copy the values of all variables from another model of the same kind, except the optimizer's."""
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
    """Return a copy of a variable's value."""
    value = variable.value
    if getattr(value, "is_fully_addressable", True) or value.is_fully_replicated:
        # On a CPU the array may share the variable's memory, which the next step overwrites.
        return np.array(keras.ops.convert_to_numpy(variable))
    # Divided, with JAX on several hosts: this host's devices hold all parts, see `with_jax.require_layout`.
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
        # NumPy's files do not know bfloat16, and return it as plain bytes.
        dtype = keras.ops.convert_to_numpy(variable).dtype
        variable.assign(values.view(dtype) if values.dtype.kind == "V" else values)
