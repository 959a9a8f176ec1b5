"""Finds traits of a built Keras model that its author may not intend, or that cost more than needed.

This module examines the model's settings and layers; python_state.py what its Python objects keep from trace
to trace, and traced_program.py a trace.
"""

import math
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import keras
import numpy as np

from slipway.components.counted_words import first_of
from slipway.components.preflight.definitions import Definitions
from slipway.components.preflight.question_and_answer import Question, Trait
from slipway.components.preflight.shapes import Calls
from slipway.components.trainer.compile_options import accumulated_steps, unsynchronized
from slipway.components.trainer.trace_error import layer_and_line

DEFERRED_BYTES = 2**20
"""Weights of at least this size are not allocated: their shapes suffice."""
LARGE_TABLE_BYTES, SPARSE_SHARE = 256 * 2**20, 0.1
"""Embedding tables of at least this size are reported if each step updates the whole table but looks up less
than this share of its rows."""
_INITIALIZERS = ("_initialize_with_initializer", "_deferred_initialize")
"""Methods of `keras.Variable` that allocate its array; its class for a backend inherits them."""
_TRUNCATED = re.compile(r"dtype (\w+) requested in .* truncated to dtype (\w+)")


@contextmanager
def only_shapes_of_large_weights() -> Iterator[None]:
    """Patch Keras to allocate no array for a large weight: it may fit a TPU's memory, but not this machine's.

    Variables without a value are nothing new to Keras: a model that is built during a trace has them.
    """
    variable = keras.Variable
    make, make_later = (getattr(variable, name) for name in _INITIALIZERS)

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
        for name in _INITIALIZERS:
            delattr(variable, name)


@contextmanager
def with_all_arrays() -> Iterator[None]:
    """Allocate all weights again, within `only_shapes_of_large_weights`."""
    variable = keras.Variable
    patched = {name: vars(variable)[name] for name in _INITIALIZERS if name in vars(variable)}
    for name in patched:
        delattr(variable, name)
    try:
        yield
    finally:
        for name, function in patched.items():
            setattr(variable, name, function)


@contextmanager
def casts(found: list[Trait], dotted_path: str) -> Iterator[None]:
    """Collect the dtypes that the user's code requests and JAX silently replaces.

    Args:
        found: the list to which the traits are added.
        dotted_path: the dotted path of `build_model`.
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


@contextmanager
def cut_integers(found: list[Trait], dotted_path: str) -> Iterator[None]:
    """Collect the integers in the user's code of which JAX silently keeps 32 bits.

    JAX warns of a type that is requested (`casts`), not of NumPy's values that come with one.

    Args:
        found: the list to which the traits are added.
        dotted_path: the dotted path of `build_model`.
    """
    from jax._src import dtypes

    # Through it goes whatever an operation of JAX is given.
    canonicalize = dtypes.canonicalize_value

    def watched(value: Any) -> Any:
        number = _beyond_32_bits(value)
        where = layer_and_line(sys._getframe(1), dotted_path) if number is not None else ""
        if where:
            found.append(Trait(kind="wide_integers", where=where, detail=f"{number:,}"))
        return canonicalize(value)

    with mock.patch.object(dtypes, "canonicalize_value", watched):
        yield


def _beyond_32_bits(value: Any) -> int | None:
    """Return the integer farthest from zero in an array or scalar of NumPy's, if 32 bits do not hold it."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype not in (np.int64, np.uint64):
        return None
    limits = np.iinfo(np.int32 if value.dtype == np.int64 else np.uint32)
    ends = (int(value.max()), int(value.min())) if value.size else (0, 0)
    return max(ends, key=abs) if ends[0] > limits.max or ends[1] < limits.min else None


def traits_of(
    model: Any, question: Question, lines: Definitions, calls: Calls | None = None
) -> Iterator[Trait]:
    """Yield the traits that follow from the model's settings and layers.

    Args:
        model: a built model whose optimizer has its variables.
        lines: of the user's code that made it.
        calls: of its layers in a trace of the step; None: those of its graph are taken.
    """
    calls = calls or Calls.of_graph(model)
    if model.run_eagerly:
        yield Trait(kind="run_eagerly", where=lines.of_compile(model))
    if not model.trainable_variables and model.variables:
        yield Trait(kind="frozen", where=lines.of_compile(model))
    if (steps := accumulated_steps(model)) > 1:
        yield Trait(kind="accumulates", where=lines.of_compile(model), detail=str(steps))
    if apart := unsynchronized(model):
        named = [f"{each.name} ({line})" if (line := lines.of(each)) else each.name for each in apart]
        yield Trait(kind="batch_norm", where=first_of(named, 3))
    for layer in model._flatten_layers(include_self=False):
        if isinstance(layer, keras.layers.Embedding) and layer.built and layer.trainable:
            where = ", ".join(filter(None, (f"the layer {layer.name!r}", lines.of(layer))))
            answers = calls.shapes.get(id(layer), [])
            yield from _sparsely_used(layer, model, question, answers, where)


def _sparsely_used(
    layer: Any, model: Any, question: Question, answers: Sequence[Sequence[int | None]], where: str
) -> Iterator[Trait]:
    """Yield a trait if a table is updated whole in each step, and little of it is looked up.

    Args:
        answers: the shapes of what the table answered, its batch None where the layer was not traced.
    """
    shape = tuple(layer.embeddings.shape)
    table_bytes = math.prod(shape) * 4
    if not answers or any(None in each[1:] for each in answers):
        return
    looked_up = sum(
        (each[0] or question.batch_size) * math.prod(size or 1 for size in each[1:-1]) for each in answers
    )
    # An optimizer names its slots by the path of their variable with "_" for "/".
    flat = layer.embeddings.path.replace("/", "_") + "_"
    copies = sum(
        tuple(each.shape) == shape and each.path.rpartition("/")[2].startswith(flat)
        for each in model.optimizer.variables
    )
    if copies > 1 and table_bytes >= LARGE_TABLE_BYTES and looked_up < SPARSE_SHARE * shape[0]:
        yield Trait(
            kind="whole_table",
            where=where,
            detail=f"{shape[0]:,} rows and the optimizer's {copies} numbers for each of their values, "
            f"{(1 + copies) * table_bytes / 2**30:.1f} GiB, for at most {looked_up:,} rows",
        )
