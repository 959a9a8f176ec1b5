"""Runs TFT's analysis of a data set without Beam: one pass over the rows for each phase of the analysis.

TFT translates the analyzers of a preprocessing_fn into a graph of operations, and that into a Beam pipeline
with some ten stages per analyzer. Here the graph is evaluated directly: the operations of a phase that take
batches are collected and fed together in one pass over the rows; the others are plain functions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf
from apache_beam.internal import pickler
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform import nodes
from tensorflow_transform.beam import analysis_graph_builder, beam_nodes
from tensorflow_transform.beam import impl as beam_impl
from tensorflow_transform.common_types import TensorType

from slipway.components.process_pool import TaskProgress, Workers
from slipway.components.shards import Rows, Shard
from slipway.components.transform.examples import BATCH_ROWS, Columns
from slipway.components.transform.failed_rows import told_in_words
from slipway.components.transform.graph import Apply, Preprocessing, Replacements, loaded
from slipway.components.transform.operations import Accumulator, Values, accumulator, evaluator, merge_states

_SMALLER = 8


@dataclass(frozen=True)
class Reading:
    """The rows to analyze.

    Attributes:
        shards: the shards of their files, at least one.
        workers: the workers that read the shards.
        schema: the schema of the examples, serialized.
        columns: the columns to read.
    """

    shards: Sequence[Shard]
    workers: Workers
    schema: bytes
    columns: Sequence[str]

    def gather(self, gather: "Gather") -> Iterator[list[Values]]:
        """Run the accumulators over all shards; yield their states per shard, in the order of the shards."""
        tell = Rows(self.shards, " looked at").tell
        return self.workers.map(gather, self.shards, progress=tell, again=replace(gather, parts=_SMALLER))


def analyze(preprocessing: Preprocessing, reading: Reading) -> Replacements:
    """Evaluate all analyzers.

    Args:
        preprocessing: the traced function; TFT marks in its graph the analyzers that it has taken from it.
        reading: the rows to analyze.

    Returns:
        The tensors that replace the analyzers' results in the finished graph.

    Raises:
        UnknownOperationError: the function needs an operation that only TFT's own pipeline has; no row has
            been read.
    """
    root, _, _ = analysis_graph_builder.build(
        preprocessing.concrete.graph, preprocessing.inputs, preprocessing.concrete.structured_outputs
    )
    finished = nodes.Traverser(_Evaluate(preprocessing, reading)).visit_value_node(root)
    replacements: Replacements = finished.replacements()
    return replacements


@dataclass(frozen=True)
class Gather:
    """Runs accumulators over a shard.

    Attributes:
        apply: a function from a batch to the tensors that the accumulators take; None, as in other
            processes, to load it from `folder`.
        folder: the folder with the saved function, for other processes; None if it is not saved.
        schema: the schema of the examples, serialized.
        columns: the columns to read.
        names: the names of the tensors.
        kept: for each accumulator, the names of the tensors that it takes (None: all, by name) and a factory.
        parts: the factor by which batches are smaller than usual.
    """

    apply: Apply | None
    folder: str | None
    schema: bytes
    columns: Sequence[str]
    names: Sequence[str]
    kept: Sequence[tuple[Any, Callable[[], Accumulator]]]
    parts: int = 1

    @cached_property
    def _loaded(self) -> Apply:
        return self.apply or loaded(str(self.folder), self.columns, self.names)

    @cached_property
    def _reader(self) -> Columns:
        return Columns(schema_pb2.Schema.FromString(self.schema), self.columns)

    def __call__(self, shard: Shard, progress: TaskProgress) -> list[Values]:
        """Return the state of each accumulator."""
        gathered = [(keys, make()) for keys, make in self.kept]
        rows = 0
        for batch in self._reader.batches(shard.files, BATCH_ROWS // self.parts):
            with told_in_words(tf.errors.OpError, memory=tf.errors.ResourceExhaustedError):
                results = self._loaded(batch)
            found = {
                name: np.asarray(value) if isinstance(value, tf.Tensor) else value
                for name, value in results.items()
            }
            for keys, each in gathered:
                each.add(_picked(found, keys))
            first = next(iter(batch.values()), None)
            rows += int(first.shape[0] or 0) if first is not None else 0
            progress(rows, 0)
        progress(rows, shard.size_bytes)
        return [each.result() for _, each in gathered]

    def __getstate__(self) -> dict[str, object]:
        # Each process loads the graph. TFT's combiners hold functions, which only Beam's pickler can handle.
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**state, "apply": None, "kept": pickler.dumps(list(self.kept))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, kept=pickler.loads(state["kept"]))


@dataclass
class _Lazy:
    """A collection that is evaluated on demand, once."""

    evaluate: Callable[[], Values]

    @cached_property
    def values(self) -> Values:
        return self.evaluate()


@dataclass
class _Graph:
    """The preprocessing_fn with the results of the analyzers up to a phase."""

    tensors: Mapping[str, TensorType]
    bindings: Sequence[_Lazy]

    def replacements(self) -> Replacements:
        bound = [binding.values[0] for binding in self.bindings]
        found: Replacements = beam_impl._get_tensor_replacement_map(None, *bound)
        return found


@dataclass
class _Pass:
    """One pass over the rows, which is run when one of its results is needed."""

    run: Callable[["_Pass"], list[Values]]
    graph: _Graph
    kept: list[tuple[Any, Any, Callable[[], Accumulator]]] = field(default_factory=list)

    def keep(self, keys: Any, operation: Any) -> _Lazy:
        place = len(self.kept)
        self.kept.append((keys, operation, accumulator(operation)))
        return _Lazy(lambda: self._results[place])

    @cached_property
    def _results(self) -> list[Values]:
        return self.run(self)


@dataclass
class _Part:
    """Some of the tensors of each batch of a pass; if `keys` is None, all of them by name."""

    of: _Pass
    keys: Any = None


class _Evaluate(nodes.Visitor):  # type: ignore[misc]
    """Prepares each operation for evaluation; nothing is evaluated before all of them have been visited."""

    def __init__(self, preprocessing: Preprocessing, reading: Reading) -> None:
        self._preprocessing = preprocessing
        self._reading = reading

    def visit(self, operation: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs of an operation, to be evaluated later."""
        if isinstance(operation, beam_nodes.CreateSavedModel):
            return (_Graph(operation.output_signature, inputs),)
        if isinstance(operation, beam_nodes.ExtractInputForSavedModel):
            return (None,)  # the rows themselves, which only a pass reads
        if isinstance(operation, beam_nodes.ApplySavedModel):
            return (_Part(_Pass(self._run, inputs[0])),)
        if inputs and isinstance(inputs[0], _Part):
            if isinstance(operation, beam_nodes.ExtractFromDict):
                return (_Part(inputs[0].of, operation.keys),)
            return (inputs[0].of.keep(inputs[0].keys, operation),)
        graph = self._preprocessing.concrete.graph
        evaluate = evaluator(operation, folder=self._preprocessing.temporary, graph=graph)
        outputs = _Lazy(lambda: list(evaluate([each.values for each in inputs])))
        return tuple(_Lazy(lambda i=i: outputs.values[i]) for i in range(operation.num_outputs))  # type: ignore[misc]

    def validate_value(self, value: Any) -> None:
        """Do nothing; TFT requires this method."""

    def _run(self, one: _Pass) -> list[Values]:
        tensors = {name: tensor.name for name, tensor in one.graph.tensors.items()}
        replacements = one.graph.replacements()
        is_shared = self._reading.workers.others > 0
        folder = self._preprocessing.save(replacements, tensors) if is_shared else None
        apply = self._preprocessing.analyzed(tensors, replacements, self._reading.columns, folder=folder)
        gather = Gather(
            apply,
            self._reading.workers.reachable(folder) if folder else None,
            self._reading.schema,
            self._reading.columns,
            list(tensors),
            [(keys, make) for keys, _, make in one.kept],
        )
        parts = list(self._reading.gather(gather))
        return [
            merge_states(operation, [part[place] for part in parts])
            for place, (_, operation, _) in enumerate(one.kept)
        ]


def _picked(found: Mapping[str, object], keys: Any) -> Any:
    if keys is None:
        return found
    return tuple(found[key] for key in keys) if isinstance(keys, tuple) else found[keys]
