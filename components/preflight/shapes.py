"""Reads the facts that the rules need from a built Keras model and its traced step."""

import math
from collections.abc import Iterator
from typing import Any

import keras

from slipway.components.preflight.request import Layer

CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print")
"""JAX primitives that call back to the host in the middle of a step."""


def layers_of(model: Any) -> tuple[Layer, ...]:
    """The layers that compute, those in nested models, too."""
    outputs = {id(tensor) for tensor in keras.tree.flatten(getattr(model, "outputs", None) or [])}
    return tuple(
        Layer(
            name=layer.name,
            kind=type(layer).__name__,
            matrices=tuple(tuple(each.shape) for each in layer.trainable_variables if len(each.shape) > 1),
            positions=_positions(layer),
            is_output=any(id(tensor) in outputs for tensor in _tensors(layer, "output")),
            dtype=layer.dtype_policy.compute_dtype or "float32",
        )
        for layer in model._flatten_layers(include_self=False)
        if not isinstance(layer, keras.Model)
    )


def callbacks_in(jaxpr: Any) -> Iterator[str]:
    """Calls back to the host in a traced program, each with the names that it was traced under."""
    for equation in jaxpr.eqns:
        if equation.primitive.name in CALLBACKS:
            where = str(equation.source_info.name_stack)
            yield f"{equation.primitive.name}{f' in {where}' if where else ''}"
        for value in equation.params.values():
            for inner in value if isinstance(value, list | tuple) else [value]:
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from callbacks_in(inner)


def _positions(layer: Any) -> int:
    shapes = [tensor.shape for tensor in _tensors(layer, "output")]
    if len(shapes) != 1 or isinstance(layer, keras.layers.Embedding):
        return 1
    return math.prod(size or 1 for size in shapes[0][1:-1])


def _tensors(layer: Any, name: str) -> list[Any]:
    try:
        tensors: list[Any] = keras.tree.flatten(getattr(layer, name))
    except (AttributeError, ValueError):  # called never, or more than once
        return []
    return tensors
