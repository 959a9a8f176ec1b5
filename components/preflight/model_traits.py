"""Finds in a built Keras model what trains otherwise than its author may mean, or for more than it needs.

What a trace shows is in traced_program.py; this is what the objects show, before, between and after traces.
"""

import math
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np

from slipway.components.preflight.question_and_answer import Question, Trait
from slipway.components.trainer.compile_options import unsynchronized
from slipway.components.trainer.trace_error import layer_and_line

DEFERRED_BYTES = 2**20
"""Weights from here on are not made: their shapes suffice."""
LARGE_TABLE_BYTES, SPARSE_SHARE = 256 * 2**20, 0.1
"""Tables from here on of which a step looks up less than this share are told, if all of it is updated."""
_TRUNCATED = re.compile(r"dtype (\w+) requested in .* truncated to dtype (\w+)")
_NAN = object()
"""Stands for NaN, which does not equal itself."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@contextmanager
def only_shapes_of_large_weights() -> Iterator[None]:
    """Has Keras make no array for a large weight: this machine's memory need not hold what a TPU's may.

    Keras itself knows variables without a value: a model that is built while it is traced has them.
    """
    variable = keras.Variable
    names = ("_initialize_with_initializer", "_deferred_initialize")
    make, make_later = (getattr(variable, name) for name in names)

    def is_large(self: Any) -> bool:
        return bool(math.prod(self._shape) * 4 >= DEFERRED_BYTES)

    def initialize(self: Any, initializer: Any) -> None:
        if is_large(self):
            self._value, self._initializer = None, initializer
        else:
            make(self, initializer)

    def initialize_later(self: Any) -> None:
        if not is_large(self):
            make_later(self)

    variable._initialize_with_initializer, variable._deferred_initialize = initialize, initialize_later
    try:
        yield
    finally:
        for name in names:
            delattr(variable, name)


@contextmanager
def casts(found: list[Trait], dotted_path: str) -> Iterator[None]:
    """Collects the types that the user's code asks for and JAX silently replaces.

    Args:
        found: gets them.
        dotted_path: of `build_model`.
    """

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        kinds = _TRUNCATED.search(str(message))
        where = layer_and_line(sys._getframe(1), dotted_path) if kinds else ""
        if kinds and where:
            found.append(Trait(kind="cast", where=where, detail=f"{kinds[1]} to {kinds[2]}"))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


def kept_values(model: Any) -> dict[tuple[str, str], object]:
    """The plain values that the user's own layers keep in their attributes, by layer and attribute."""
    return {
        (_named(layer), name): _frozen(value)
        for layer in _own_objects(model)
        for name, value in vars(layer).items()
        if not name.startswith("_") and _is_plain(value)
    }


def side_effects(before: dict[tuple[str, str], object], model: Any) -> Iterator[Trait]:
    """Which of the values of `kept_values` another trace has changed."""
    for (layer, name), value in kept_values(model).items():
        if (layer, name) in before and before[layer, name] != value:
            yield Trait(kind="side_effect", where=layer, detail=name)


def leaked_tracers(model: Any) -> Iterator[Trait]:
    """The attributes in which the user's own layers keep tensors of a trace that is over."""
    for layer in _own_objects(model):
        for name, value in vars(layer).items():
            if not name.startswith("_") and any(map(_is_tracer, _leaves(value))):
                yield Trait(kind="leaked_tracer", where=_named(layer), detail=name)


def traits_of(model: Any, question: Question) -> Iterator[Trait]:
    """What the model's settings say.

    Args:
        model: built, with the optimizer's variables.
    """
    if model.run_eagerly:
        yield Trait(kind="run_eagerly")
    if not model.trainable_variables and model.variables:
        yield Trait(kind="frozen")
    if question.replicas > 1 and (names := unsynchronized(model).split(", ")) != [""]:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield Trait(kind="batch_norm", where=f"{', '.join(names[:3])}{more}")
    for layer in model._flatten_layers(include_self=False):
        if isinstance(layer, keras.layers.Embedding) and layer.built and layer.trainable:
            yield from _sparsely_used(layer, model, question)


def _sparsely_used(layer: Any, model: Any, question: Question) -> Iterator[Trait]:
    shape = tuple(layer.embeddings.shape)
    table_bytes = math.prod(shape) * 4
    try:
        looked_up = question.batch_size * math.prod(layer.input.shape[1:])
    except (AttributeError, ValueError, TypeError):  # called never, or more than once
        return
    # An optimizer names its slots by the path of their variable with "_" for "/".
    flat = layer.embeddings.path.replace("/", "_") + "_"
    copies = sum(
        tuple(each.shape) == shape and each.path.rpartition("/")[2].startswith(flat)
        for each in model.optimizer.variables
    )
    if copies > 1 and table_bytes >= LARGE_TABLE_BYTES and looked_up < SPARSE_SHARE * shape[0]:
        yield Trait(
            kind="whole_table",
            where=f"the layer {layer.name!r}",
            detail=f"{shape[0]:,} rows and the optimizer's {copies} numbers for each of their values, "
            f"{(1 + copies) * table_bytes / 2**30:.1f} GiB, for at most {looked_up:,} rows",
        )


def _own_objects(model: Any) -> Iterator[Any]:
    """The layers, and the model, of classes that are not Keras'."""
    for layer in model._flatten_layers():
        if not type(layer).__module__.startswith("keras."):
            yield layer


def _named(layer: Any) -> str:
    kind = "the model" if isinstance(layer, keras.Model) else "the layer"
    return f"{kind} {layer.name!r} ({type(layer).__name__})"


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple | set):
        return all(map(_is_plain, value))
    return isinstance(value, (*_PLAIN, np.generic)) or (isinstance(value, np.ndarray) and value.size < 1000)


def _frozen(value: Any) -> object:
    if isinstance(value, dict):
        return tuple((key, _frozen(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    if isinstance(value, set):
        return frozenset(map(_frozen, value))
    return value if value == value else _NAN


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _is_tracer(value: object) -> bool:
    return any(base.__name__ == "Tracer" for base in type(value).__mro__)
