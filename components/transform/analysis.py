"""TFT's analysis of a data set in this process: one pass over the rows for each of its phases.

TFT translates what a preprocessing_fn asks for into a graph of operations, and that into a Beam pipeline with
some ten stages for each analyzer. Here the same graph is evaluated as it is: what takes batches is gathered
phase by phase and fed side by side in one pass, the rest are functions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_transform import nodes
from tensorflow_transform.beam import analysis_graph_builder, beam_nodes
from tensorflow_transform.beam import impl as beam_impl
from tensorflow_transform.common_types import TensorType

from slipway.components.transform.failed_rows import told_in_words
from slipway.components.transform.graph import Preprocessing, Replacements
from slipway.components.transform.operations import Accumulator, Values, accumulator, evaluator

Batches = Callable[[], Iterable[Mapping[str, TensorType]]]
"""Goes over the rows once: tensors by column, a batch at a time."""


def analyze(preprocessing: Preprocessing, batches: Batches, columns: Sequence[str]) -> Replacements:
    """Evaluates everything that is analyzed.

    Args:
        preprocessing: the traced function; TFT marks in its graph what it took from there.
        batches: the rows to look at.
        columns: what a batch holds.

    Returns:
        What stands for it in the finished graph.

    Raises:
        UnknownOperationError: it asks for what only TFT's own pipeline has; no row was looked at.
    """
    root, _, _ = analysis_graph_builder.build(
        preprocessing.concrete.graph, preprocessing.inputs, preprocessing.concrete.structured_outputs
    )
    finished = nodes.Traverser(_Evaluate(preprocessing, batches, columns)).visit_value_node(root)
    replacements: Replacements = finished.replacements()
    return replacements


@dataclass
class _Later:
    """A collection that is evaluated on demand, once."""

    evaluate: Callable[[], Values]

    @cached_property
    def values(self) -> Values:
        return self.evaluate()


@dataclass
class _Graph:
    """The preprocessing_fn with what is analyzed up to a phase."""

    tensors: Mapping[str, TensorType]
    bindings: Sequence[_Later]

    def replacements(self) -> Replacements:
        bound = [binding.values[0] for binding in self.bindings]
        found: Replacements = beam_impl._get_tensor_replacement_map(None, *bound)
        return found


@dataclass
class _Pass:
    """One pass over the rows, and what is kept of it."""

    run: Callable[["_Pass"], None]
    graph: _Graph
    kept: list[tuple[Any, Accumulator]] = field(default_factory=list)
    is_done: bool = False

    def keep(self, keys: Any, what: Accumulator) -> _Later:
        self.kept.append((keys, what))
        return _Later(lambda: self._results(what))

    def _results(self, what: Accumulator) -> Values:
        if not self.is_done:
            self.run(self)
            self.is_done = True
        return what.result()


@dataclass
class _Part:
    """Some tensors of each batch of a pass; with None for the keys all of them, by name."""

    of: _Pass
    keys: Any = None


class _Evaluate(nodes.Visitor):  # type: ignore[misc]
    """Makes of each operation what can be evaluated; nothing is, before all have been visited."""

    def __init__(self, preprocessing: Preprocessing, batches: Batches, columns: Sequence[str]) -> None:
        self._preprocessing = preprocessing
        self._batches = batches
        self._columns = columns

    def visit(self, operation: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of an operation."""
        if isinstance(operation, beam_nodes.CreateSavedModel):
            return (_Graph(operation.output_signature, inputs),)
        if isinstance(operation, beam_nodes.ExtractInputForSavedModel):
            return (None,)  # the rows, which only a pass takes
        if isinstance(operation, beam_nodes.ApplySavedModel):
            return (_Part(_Pass(self._run, inputs[0])),)
        if inputs and isinstance(inputs[0], _Part):
            if isinstance(operation, beam_nodes.ExtractFromDict):
                return (_Part(inputs[0].of, operation.keys),)
            return (inputs[0].of.keep(inputs[0].keys, accumulator(operation)),)
        graph = self._preprocessing.concrete.graph
        evaluate = evaluator(operation, folder=self._preprocessing.temporary, graph=graph)
        outputs = _Later(lambda: list(evaluate([each.values for each in inputs])))
        return tuple(_Later(lambda i=i: outputs.values[i]) for i in range(operation.num_outputs))  # type: ignore[misc]

    def validate_value(self, value: Any) -> None:
        """Required by TFT; nothing to validate."""

    def _run(self, one: _Pass) -> None:
        tensors = {name: tensor.name for name, tensor in one.graph.tensors.items()}
        apply = self._preprocessing.analyzed(tensors, one.graph.replacements(), self._columns)
        for batch in self._batches():
            with told_in_words(tf.errors.OpError):
                results = apply(batch)
            found = {
                name: np.asarray(value) if isinstance(value, tf.Tensor) else value
                for name, value in results.items()
            }
            for keys, kept in one.kept:
                kept.add(_picked(found, keys))


def _picked(found: Mapping[str, object], keys: Any) -> Any:
    if keys is None:
        return found
    return tuple(found[key] for key in keys) if isinstance(keys, tuple) else found[keys]
