"""Reads from a built Keras model the facts about its layers that the rules need."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras

from slipway.components.preflight.padding import MATRIX_LAYERS
from slipway.components.preflight.question_and_answer import Layer


def layers_of(
    model: Any, calls: "Calls | None" = None, *, line_of: Callable[[Any], str] = lambda _: ""
) -> tuple[Layer, ...]:
    """Return the layers of a model, including those in nested models and in other layers.

    Args:
        model: a built model.
        calls: of its layers. With None, those of its Keras graph are taken; of a model that has none, and of
            layers within others, the positions are 1.
        line_of: returns the line of the user's code that made a layer; "" if unknown.
    """
    calls = calls or Calls.of_graph(model)
    layers = [each for each in model._flatten_layers(include_self=False) if not isinstance(each, keras.Model)]
    names = Counter(each.name for each in layers)
    return tuple(
        Layer(
            # Blocks of one class have layers of one name.
            name=layer.name if names[layer.name] == 1 else layer.path or layer.name,
            kind=type(layer).__name__,
            matrices=tuple(tuple(each.shape) for each in _own_weights(layer) if len(each.shape) > 1),
            positions=_positions(layer, calls.shapes.get(id(layer), [])),
            is_output=id(layer) in calls.outputs,
            is_frozen=_is_frozen(layer),
            dtype=layer.dtype_policy.compute_dtype or "float32",
            line=line_of(layer),
        )
        for layer in layers
    )


def _own_weights(layer: Any) -> list[Any]:
    """Return the weights of a layer, frozen ones too, without those of the layers that it is made of."""
    others = {id(one) for each in layer._flatten_layers(include_self=False) for one in each.variables}
    return [each for each in layer.weights if id(each) not in others]


def _is_frozen(layer: Any) -> bool:
    """Return True if the layer's own matrix is not trained, whatever LoRA adds to it."""
    matrices = [each for each in _own_weights(layer) if len(each.shape) > 1]
    return bool(matrices) and not max(matrices, key=lambda each: math.prod(each.shape)).trainable


@dataclass
class Calls:
    """The calls of layers, by the `id` of the layer.

    Attributes:
        shapes: of the tensors that a layer has returned.
        outputs: the layers that produce the model's output.
    """

    shapes: dict[int, list[tuple[int | None, ...]]] = field(default_factory=dict)
    outputs: set[int] = field(default_factory=set)

    @classmethod
    def of_graph(cls, model: Any) -> "Calls":
        """Return the calls in a model's Keras graph; none if it has no graph."""
        if not getattr(model, "outputs", None):
            return cls()
        answers = {id(layer): _answers(layer) for layer in model._flatten_layers(include_self=False)}
        ends = {id(tensor) for output in keras.tree.flatten(model.outputs) for tensor in _made_of(output)}
        outputs = {layer for layer, tensors in answers.items() if ends & set(map(id, tensors))}
        return cls({layer: _shapes(tensors) for layer, tensors in answers.items()}, outputs)

    @classmethod
    @contextmanager
    def recorded(cls, model: Any) -> Iterator["Calls"]:
        """Record the calls while a model is called, as by a trace of its training step.

        The outputs are those of its graph. Where there is none, operations that are not layers may compute
        the output from a layer's tensors: if no matrix layer returns the output itself, the outputs are the
        last matrix layer and those as wide as the output.
        """
        found = cls(outputs=cls.of_graph(model).outputs)
        answers: dict[int, list[Any]] = {}
        order: list[Any] = []
        ends: list[Any] = []
        with _listening(model, order, answers, ends):
            yield found
        found.shapes = {layer: _shapes(tensors) for layer, tensors in answers.items()}
        if found.outputs:
            return
        last = {id(tensor) for tensor in ends}
        found.outputs = {layer for layer, tensors in answers.items() if last & set(map(id, tensors))}
        matrix_layers = [layer for layer in order if type(layer).__name__ in MATRIX_LAYERS]
        if matrix_layers and not found.outputs & set(map(id, matrix_layers)):
            widths = {shape[-1] for shape in _shapes(ends) if shape}
            as_wide = [each for each in matrix_layers if found.shapes[id(each)][-1][-1] in widths]
            found.outputs |= {id(each) for each in [*as_wide, matrix_layers[-1]]}


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


def _positions(layer: Any, shapes: list[tuple[int | None, ...]]) -> int:
    """Return the most positions that a call of a layer has answered for, one example's."""
    if isinstance(layer, keras.layers.Embedding):
        return 1
    return max((math.prod(size or 1 for size in _apart(layer, shape)) for shape in shapes), default=1)


def _apart(layer: Any, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Return the sizes of the axes that a layer treats alike, such as those of a sequence, in its answer."""
    if isinstance(layer, keras.layers.EinsumDense):  # which may have several axes of features: heads
        given, _, result = layer.equation.replace(" ", "").partition("->")
        if "..." not in result and len(result) == len(shape):
            weights = given.partition(",")[2]
            pairs = zip(result[1:], shape[1:], strict=True)
            return tuple(size for axis, size in pairs if axis not in weights)
    # Keras' layers of convolutions alone have features first, if told to.
    is_first = getattr(layer, "data_format", None) == "channels_first"
    return shape[2:] if is_first else shape[1:-1]


def _shapes(tensors: list[Any]) -> list[tuple[int | None, ...]]:
    return [tuple(each.shape) for each in tensors if hasattr(each, "shape")]


def _answers(layer: Any) -> list[Any]:
    try:
        tensors: list[Any] = keras.tree.flatten(layer.output)
    except (AttributeError, ValueError):  # the layer is called never, or more than once
        return []
    return tensors
