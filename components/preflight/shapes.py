"""Reads the facts that the rules need from a built Keras model."""

import math
from typing import Any

import keras

from slipway.components.preflight.question_and_answer import Layer


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
