"""Turns the user's preprocessing_fn into TensorFlow graphs: those for the analysis, and the finished one.

TFT does the same inside its Beam stages, and its own functions are used here. But the preprocessing_fn is
traced once or twice (more often if an analyzer needs another's result) instead of nine times, and the graph
of the first pass is run as traced, without being saved and loaded.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow.python.framework import ops
from tensorflow_transform import (
    analyzer_nodes,
    annotators,
    graph_context,
    graph_tools,
    impl_helper,
    nodes,
    tf2_utils,
)
from tensorflow_transform.beam import common as beam_common
from tensorflow_transform.common_types import TensorType
from tensorflow_transform.saved import saved_transform_io_v2
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io

from slipway.components.errors import ComponentError
from slipway.components.transform.annotations import Annotated

Replacements = Mapping[str, tf.Tensor]
"""The constant tensors that replace the analyzers' results, by the name of the tensor in the traced graph."""


Apply = Callable[[Mapping[str, TensorType]], dict[str, TensorType]]
"""A function from tensors by column to tensors by name."""

_PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}
_OF_GENERATORS = (
    "RngReadAndSkip",
    "StatefulRandom",
    "StatefulStandardNormal",
    "StatefulTruncatedNormal",
    "StatefulUniform",
)


@dataclass(frozen=True)
class Preprocessing:
    """A traced preprocessing_fn.

    Attributes:
        function: the user's function, bound to its arguments other than the columns.
        specs: the type of each column.
        temporary: a folder for intermediate results of the passes.
        concrete: the function as traced without any results of analyzers.
        annotated: the outputs and annotations of the function, in that graph.
        inputs: the columns' tensors in that graph.
        assets: the vocabulary files, by the name that the function gives them.
    """

    function: Callable[..., Any]
    specs: Mapping[str, tf.TypeSpec]
    temporary: str
    concrete: Any
    annotated: Annotated
    inputs: Mapping[str, TensorType]
    assets: Mapping[str, str]

    @cached_property
    def fingerprint(self) -> Mapping[str, graph_tools.AnalyzersFingerprint]:
        """The analyzers' fingerprint, by which TFT detects a function that differs from trace to trace."""
        found: Mapping[str, graph_tools.AnalyzersFingerprint] = graph_tools.get_analyzers_fingerprint(
            self.concrete.graph, self.inputs
        )
        return found

    def analyzed_columns(self) -> list[str]:
        """Return the columns that analyzers need. Must be called before TFT's analysis graph is built."""
        visitor = graph_tools.SourcedTensorsVisitor()
        for sink in self.concrete.graph.get_collection(analyzer_nodes.TENSOR_REPLACEMENTS):
            nodes.Traverser(visitor).visit_value_node(sink.future)
        # Control dependencies of the outputs also run before the analyzers.
        _, first = tf2_utils.strip_and_get_tensors_and_control_dependencies(
            tf.nest.flatten(self.concrete.structured_outputs, expand_composites=True)
        )
        wanted = list(itertools.chain(visitor.sourced_tensors, first))
        return list(graph_tools.get_dependent_inputs(self.concrete.graph, self.inputs, wanted))

    def transformed_columns(self) -> list[str]:
        """Return the columns that the outputs are computed from."""
        outputs = self.concrete.structured_outputs
        return list(graph_tools.get_dependent_inputs(self.concrete.graph, self.inputs, outputs))

    def analyzed(
        self,
        tensors: Mapping[str, str],
        replacements: Replacements,
        columns: Sequence[str],
        *,
        folder: str | None = None,
    ) -> Apply:
        """Return a function from a batch to the tensors that the analyzers read.

        Args:
            tensors: names of tensors in the traced graph, by their names in the function's result.
            replacements: the results of the previous passes.
            columns: the columns of a batch.
            folder: the folder in which `save` has written the graph; None if it has not.

        Returns:
            A function from tensors by column to tensors by name.
        """
        part = None if replacements else self._part(tensors)
        if part is None:
            return loaded(folder or self.save(replacements, tensors), columns, list(tensors))
        others = [name for name in self.inputs if name not in columns]

        def apply(batch: Mapping[str, TensorType]) -> dict[str, TensorType]:
            # TFT, too, fills in columns that nothing is computed from.
            filled = {**tf2_utils.supply_missing_inputs(self.inputs, 1, others), **batch}
            return self._computed(part, tensors, filled)

        signature = [{name: self.specs[name] for name in columns}]
        traced: Apply = tf.function(apply, input_signature=signature, autograph=False).get_concrete_function()
        return traced

    def _part(self, tensors: Mapping[str, str]) -> Any:
        """Return the part of the traced graph that computes `tensors`; None if it has tables or variables."""
        graph = self.concrete.graph
        part = self._extracted([graph.get_tensor_by_name(tensor) for tensor in tensors.values()])
        operations = [graph.get_operation_by_name(node.name) for node in part.node]
        captured = {one.op.name for one in graph.internal_captures}
        is_stateless = not any(
            one.name in captured or any(output.dtype == tf.resource for output in one.outputs)
            for one in operations
        )
        return part if is_stateless else None

    def _extracted(self, wanted: Sequence[tf.Tensor]) -> Any:
        """Return the part of the traced graph that computes some of its tensors, as a definition."""
        return tf.compat.v1.graph_util.extract_sub_graph(
            self.concrete.graph.as_graph_def(), sorted({one.op.name for one in wanted})
        )

    def _computed(
        self, part: Any, tensors: Mapping[str, str], inputs: Mapping[str, TensorType]
    ) -> dict[str, TensorType]:
        """Import what `_part` returned; return its tensors by their names in the result."""
        wanted = [self.concrete.graph.get_tensor_by_name(tensor) for tensor in tensors.values()]
        return dict(zip(tensors, self._imported(part, wanted, inputs, {}), strict=True))

    def finish(self, replacements: Replacements, folder: str) -> None:
        """Write the finished graph and the metadata of its outputs to the artifact's folder."""
        saved, annotated = self._save(replacements, {})
        metadata = dataset_metadata.DatasetMetadata(annotated.schema())
        tf.io.gfile.rename(saved, f"{folder}/{tft.TFTransformOutput.TRANSFORM_FN_DIR}")
        about = f"{folder}/{tft.TFTransformOutput.TRANSFORMED_METADATA_DIR}"
        metadata_io.write_metadata(metadata, about)
        if self.assets:
            with tf.io.gfile.GFile(f"{about}/{tft.TFTransformOutput.ASSET_MAP}", "w") as file:
                file.write(json.dumps(self.assets))

    @property
    def can_be_shared(self) -> bool:
        """Whether several processes can run the graph, each on some of the rows.

        They cannot if it has Python functions, which exist only in this process, or draws random numbers:
        each process would draw the same ones, for rows that depend on which process comes first.
        """
        definition = self.concrete.graph.as_graph_def()
        operations = [
            *definition.node,
            *(node for each in definition.library.function for node in each.node_def),
        ]
        return not any(operation.op in _PYTHON or _draws(operation) for operation in operations)

    def save(self, replacements: Replacements, tensors: Mapping[str, str]) -> str:
        """Write the graph with the results of some passes, and return the folder.

        Args:
            replacements: the results of these passes.
            tensors: names of tensors in the traced graph, by their names in the saved graph's result.
        """
        return self._save(replacements, tensors)[0]

    def _save(self, replacements: Replacements, tensors: Mapping[str, str]) -> tuple[str, Annotated]:
        """Write the graph with the results so far, as `impl_helper.trace_and_write_v2_saved_model` does."""
        folder: str = beam_common.get_unique_temp_path(self.temporary)
        again = self._needed(tensors, replacements) if tensors else self._filled_in(replacements)
        annotated = again or Annotated(self.function)
        concrete = impl_helper._trace_and_write_transform_fn(
            folder, annotated, self.specs, self.temporary, dict(replacements) or None, dict(tensors), None
        )
        if again is None:
            impl_helper._validate_analyzers_fingerprint(
                self.fingerprint,
                concrete.graph,
                tf2_utils.get_structured_inputs_from_func_graph(concrete.graph),
            )
        annotated.traced = concrete
        return folder, annotated

    def _filled_in(self, replacements: Replacements) -> Annotated | None:
        """Return the traced graph with the results filled in; None if the function must be traced again.

        It must be if tracing creates more than a graph (tables, variables, files), or may create a different
        graph: with a known result, more shapes may be known than before.
        """
        graph, outputs = self.concrete.graph, self.annotated.outputs
        is_settled = all(
            isinstance(one, tf.Tensor) and one.shape.rank and one.shape[1:].is_fully_defined()
            for one in outputs.values()
        )
        if not is_settled or self.assets or graph.captures or graph.variables or _has_state(graph):
            return None
        wanted, structure = self.annotated.flat()
        definition = self._extracted(wanted)  # without what only the analyzers need

        def again(inputs: Mapping[str, TensorType]) -> Any:
            return structure(self._imported(definition, wanted, inputs, replacements))

        return Annotated(self.function, again)

    def _needed(self, tensors: Mapping[str, str], replacements: Replacements) -> Annotated | None:
        """Return the part of the traced graph that computes `tensors`; None if the part does not suffice."""
        part = None if replacements else self._part(tensors)
        if part is None:
            return None
        # This part has no analyzers, so TFT accepts its outputs as the tensors that it requests.
        return Annotated(self.function, lambda inputs: (self._computed(part, tensors, inputs), {}))

    def _imported(
        self,
        definition: Any,
        wanted: Sequence[tf.Tensor],
        inputs: Mapping[str, TensorType],
        replacements: Replacements,
    ) -> Sequence[tf.Tensor]:
        """Import a part of the traced graph into the graph under construction; return the wanted tensors."""
        new = tf.nest.flatten([inputs[name] for name in self.inputs], expand_composites=True)
        old = tf.nest.flatten(list(self.inputs.values()), expand_composites=True)
        there = {node.name for node in definition.node}
        known = {one.name: tensor for one, tensor in zip(old, new, strict=True) if one.op.name in there}
        capture = ops.get_default_graph().capture
        known |= {name: capture(one) for name, one in replacements.items() if name.partition(":")[0] in there}
        found: Sequence[tf.Tensor] = tf.graph_util.import_graph_def(
            definition, known, [one.name for one in wanted], name=""
        )
        return found


def trace(function: Callable[..., Any], specs: Mapping[str, tf.TypeSpec], *, temporary: str) -> Preprocessing:
    """Trace a preprocessing_fn.

    Args:
        function: the user's preprocessing_fn.
        specs: the type of each column.
        temporary: a folder for intermediate results of the passes.

    Raises:
        ComponentError: the function does not return a dictionary of tensors, or creates a trainable variable.
    """
    context = graph_context.TFGraphContext(
        module_to_export=tf.Module(), temp_dir=temporary, evaluated_replacements=None
    )
    annotated = Annotated(function)
    with annotators.object_tracker_scope(annotators.ObjectTracker()):
        concrete = impl_helper.get_traced_transform_fn(annotated, specs, context).get_concrete_function()
    graph, outputs = concrete.graph, concrete.structured_outputs
    if not isinstance(outputs, dict) or not outputs:
        what = "an empty dictionary" if outputs == {} else type(outputs).__name__
        raise ComponentError(
            f"preprocessing_fn returned {what}; it must return tensors by the name of the feature",
            hint='for example return {"x": tft.scale_to_z_score(inputs["x"])}',
        )
    if variables := graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES):
        raise ComponentError(
            f"preprocessing_fn makes {variables[0].name}, a trainable variable; it may hold constants only",
            hint="train it in the model",
        )
    inputs = tf2_utils.get_structured_inputs_from_func_graph(graph)
    assets = annotators.get_asset_annotations(graph)
    annotators.clear_asset_annotations(graph)
    return Preprocessing(function, specs, temporary, concrete, annotated, inputs, assets)


def _draws(operation: Any) -> bool:
    """Return True if an operation draws random numbers from a state that it, or a variable, keeps."""
    # Operations with a state of their own have two seeds; those of a `tf.random.Generator` have known names.
    return "seed2" in operation.attr or operation.op.startswith(_OF_GENERATORS)


def _has_state(graph: Any) -> bool:
    """Return True if running the graph does more than compute its outputs, or needs more than its inputs."""
    return any(
        (one.op_def is not None and one.op_def.is_stateful)
        or any(output.dtype == tf.resource for output in one.outputs)
        for one in graph.get_operations()
    )


def loaded(folder: str, columns: Sequence[str], names: Sequence[str]) -> Apply:
    """Load a graph that `Preprocessing.save` wrote, as a function.

    Args:
        folder: the folder that `save` returned.
        columns: the columns of a batch.
        names: the names of the tensors in the function's result.
    """
    loader = saved_transform_io_v2.SavedModelLoader(folder)
    loader.finalize(set(columns), set(names))
    apply: Apply = loader.apply_transform_model
    return apply
