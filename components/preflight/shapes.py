"""Reads from a built Keras model the facts about its layers that the rules need."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras

from slipway.components.preflight.padding import MATRIX_LAYERS
from slipway.components.preflight.question_and_answer import Layer


def layers_of(
    model: Any, inputs: Any = None, *, line_of: Callable[[Any], str] = lambda _: ""
) -> tuple[Layer, ...]:
    """Return the layers of a model, including those in nested models.

    Args:
        model: a built model.
        inputs: KerasTensors with which to call a model of a custom class, which has no graph: only a call
            shows how its layers are connected. With None, the positions of such a model's layers are 1, and
            no layer is an output.
        line_of: returns the line of the user's code that made a layer; "" if unknown.
    """
    calls = _Calls.of_graph(model) if getattr(model, "outputs", None) else _Calls.recorded(model, inputs)
    return tuple(
        Layer(
            name=layer.name,
            kind=type(layer).__name__,
            matrices=tuple(tuple(each.shape) for each in layer.trainable_variables if len(each.shape) > 1),
            positions=_positions(layer, calls.answers.get(id(layer), [])),
            is_output=id(layer) in calls.outputs,
            dtype=layer.dtype_policy.compute_dtype or "float32",
            line=line_of(layer),
        )
        for layer in model._flatten_layers(include_self=False)
        if not isinstance(layer, keras.Model)
    )


@dataclass
class _Calls:
    """The calls of layers, by the `id` of the layer.

    Attributes:
        answers: the tensors that a layer has returned.
        outputs: the layers that produce the model's output.
    """

    answers: dict[int, list[Any]] = field(default_factory=dict)
    outputs: set[int] = field(default_factory=set)

    @classmethod
    def of_graph(cls, model: Any) -> "_Calls":
        """Return the calls in a model that has a Keras graph."""
        answers = {id(layer): _answers(layer) for layer in model._flatten_layers(include_self=False)}
        ends = {id(tensor) for output in keras.tree.flatten(model.outputs) for tensor in _made_of(output)}
        outputs = {layer for layer, tensors in answers.items() if ends & set(map(id, tensors))}
        return cls(answers, outputs)

    @classmethod
    def recorded(cls, model: Any, inputs: Any) -> "_Calls":
        """Return the calls recorded during one call of a model that has no Keras graph.

        Operations that are not layers may compute the output from a layer's tensors. If no matrix layer
        returns the output itself, the outputs are the last matrix layer and those as wide as the output.
        """
        if inputs is None:
            return cls()
        found = cls()
        order: list[Any] = []
        ends: list[Any] = []
        with _listening(model, order, found.answers, ends):
            model(inputs)
        last = {id(tensor) for tensor in ends}
        found.outputs = {layer for layer, tensors in found.answers.items() if last & set(map(id, tensors))}
        matrix_layers = [layer for layer in order if type(layer).__name__ in MATRIX_LAYERS]
        if matrix_layers and not found.outputs & set(map(id, matrix_layers)):
            widths = {tensor.shape[-1] for tensor in ends if tensor.shape}
            as_wide = [each for each in matrix_layers if found.answers[id(each)][-1].shape[-1] in widths]
            found.outputs |= {id(each) for each in [*as_wide, matrix_layers[-1]]}
        return found


@contextmanager
def _listening(
    model: Any, order: list[Any], answers: dict[int, list[Any]], ends: list[Any]
) -> Iterator[None]:
    """Record the calls of layers during a call of the model, and what the model's `call` returns.

    Args:
        order: the list to which the layers are added as they return.
        answers: the dictionary to which the tensors that they return are added.
        ends: the list to which the tensors that the model returns are added.
    """
    call, model_call = keras.layers.Layer.__call__, model.call

    def layer_called(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = call(self, *args, **kwargs)
        order.append(self)
        answers.setdefault(id(self), []).extend(keras.tree.flatten(answer))
        return answer

    def model_called(*args: Any, **kwargs: Any) -> Any:
        answer = model_call(*args, **kwargs)
        ends.extend(keras.tree.flatten(answer))
        return answer

    keras.layers.Layer.__call__ = layer_called
    object.__setattr__(model, "call", model_called)
    try:
        yield
    finally:
        keras.layers.Layer.__call__ = call
        object.__delattr__(model, "call")


def _made_of(tensor: Any) -> Iterator[Any]:
    """Yield a tensor and those that it is computed from value by value, as by an activation or a reshape."""
    yield tensor
    history = getattr(tensor, "_keras_history", None)
    if history is None or getattr(history.operation, "variables", None):
        return
    nodes = history.operation._inbound_nodes
    sources = nodes[history.node_index].input_tensors if nodes else []
    if len(sources) == 1 and _size(sources[0]) == _size(tensor):
        yield from _made_of(sources[0])


def _size(tensor: Any) -> int:
    return math.prod(size or 1 for size in tensor.shape[1:])


def _positions(layer: Any, answers: list[Any]) -> int:
    shapes = {tuple(tensor.shape[1:]) for tensor in answers}
    if len(shapes) != 1 or isinstance(layer, keras.layers.Embedding):
        return 1
    shape = shapes.pop()
    # Keras' layers of convolutions alone have features first, if told to.
    is_first = getattr(layer, "data_format", None) == "channels_first"
    return math.prod(size or 1 for size in (shape[1:] if is_first else shape[:-1]))


def _answers(layer: Any) -> list[Any]:
    try:
        tensors: list[Any] = keras.tree.flatten(layer.output)
    except (AttributeError, ValueError):  # the layer is called never, or more than once
        return []
    return tensors
