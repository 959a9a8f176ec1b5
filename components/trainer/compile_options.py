"""Adapts a compiled model to the devices, and to settings that `model.compile` does not know."""

import math
from typing import Any

import keras

from slipway.components.errors import ComponentError
from slipway.components.trainer.device_rules import require_one_step_of_torch, require_plain_steps
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.learning_rate import optimizers_of, optimizers_to_set
from slipway.components.trainer.settings.step import StepSettings
from slipway.components.trainer.steps_per_execution import choose_steps_per_execution

_FLOPS_PER_SECOND = {"cpu": 5e9, "gpu": 2e12, "tpu": 5e12}
"""A speed that any training reaches; only its order of magnitude matters for `estimate_step_s`."""
_FLOPS_PER_WEIGHT = 6  # multiply and add, once forward and twice backward


def dtype_policy(step: StepSettings, devices: Devices) -> str:
    """Return the Keras dtype policy to build the model under. Weights are float32 under all of them."""
    if step.precision != "auto":
        return step.precision
    return "mixed_bfloat16" if devices.kind == "tpu" else "float32"


def set_step(
    model: Any,
    step: StepSettings,
    devices: Devices,
    *,
    batch_size: int,
    steps_per_epoch: int,
    limit: int | None,
    longest: int = 1,
) -> None:
    """Set XLA, gradient accumulation and steps per execution of a compiled model.

    Args:
        model: compiled.
        batch_size: examples per step.
        steps_per_epoch: full batches in an epoch.
        limit: the most steps per execution if the settings leave the number open, as nothing is saved or
            recorded within an execution; None: no limit.
        longest: the greatest length of a batch, for a model that takes any.

    Raises:
        ComponentError: a setting does not work on these devices.
    """
    if devices.strategy is not None:
        require_plain_steps(
            step,
            kind=devices.kind,
            accumulated=accumulated_steps(model),
        )
    require_one_step_of_torch(step, backend=devices.backend)
    model.jit_compile = _uses_xla(step, devices, model)
    if step.accumulate_steps > 1:
        accumulate(model, step.accumulate_steps)
    if step.steps_per_execution is not None:
        model.steps_per_execution = step.steps_per_execution
    elif devices.strategy is not None or devices.backend == "torch":
        model.steps_per_execution = 1
    else:
        model.steps_per_execution = choose_steps_per_execution(
            steps_per_epoch,
            step_s=estimate_step_s(model, devices, batch_size=batch_size, longest=longest),
            limit=limit,
        )


def unsynchronized(model: Any) -> list[Any]:
    """Return the layers that normalise only over their replica's examples under tf.distribute."""
    layers = model._flatten_layers(include_self=False)
    kind = keras.layers.BatchNormalization
    return [each for each in layers if isinstance(each, kind) and not each.synchronized]


def estimate_step_s(model: Any, devices: Devices, *, batch_size: int, longest: int = 1) -> float:
    """Return a rough upper estimate of the seconds per step; infinity if an output shape is unknown.

    Args:
        longest: stands for unknown dimensions.
    """
    if not getattr(model, "inputs", None):
        return math.inf  # a subclassed model knows its layers' shapes only after its first batch
    flops = 0.0
    for layer in model._flatten_layers(include_self=False):
        weights = sum(math.prod(each.shape) for each in layer.trainable_variables if len(each.shape) > 1)
        if not weights or list(layer._flatten_layers(include_self=False)):
            continue  # no matrices of its own
        try:
            # How often the weights are used per example: once, or at every position.
            positions = math.prod(size or longest for size in layer.output.shape[1:-1])
        except AttributeError:
            return math.inf
        flops += _FLOPS_PER_WEIGHT * weights * positions * batch_size / devices.replicas
    return flops / _FLOPS_PER_SECOND[devices.kind]


def accumulated_steps(model: Any) -> int:
    """Return the most steps whose gradients an optimizer of a compiled model averages into one update."""
    return max((each.gradient_accumulation_steps or 1 for each in optimizers_of(model)), default=1)


def accumulate(model: Any, steps: int) -> None:
    """Have the optimizers of a compiled model average the gradients of several steps into one update.

    Args:
        steps: > 1.

    Raises:
        ComponentError: an optimizer has its variables already, without any to add up gradients in; or see
            `optimizers_to_set`.
    """
    for optimizer in optimizers_to_set(model, "train.accumulate_steps"):
        _accumulate(optimizer, steps)


def _accumulate(optimizer: Any, steps: int) -> None:
    if optimizer.built and optimizer.gradient_accumulation_steps != steps:
        raise ComponentError(
            f"train.accumulate_steps is {steps}, but build_model returns a model whose optimizer has its "
            "variables already, without any to add up gradients in, as one that was loaded from a file has",
            hint="compile the model with a new optimizer after it is loaded; or leave the key out",
        )
    optimizer.gradient_accumulation_steps = steps


def _uses_xla(step: StepSettings, devices: Devices, model: Any) -> bool:
    if devices.backend == "jax":
        return True
    if devices.strategy is not None:
        return False  # the TPU runtime compiles anyway
    if step.xla == "auto":
        # On a CPU, XLA measured neutral or slower; on a GPU, Keras knows which layers it can compile.
        return devices.backend == "tensorflow" and devices.kind == "gpu" and bool(model.jit_compile)
    return step.xla == "always"
