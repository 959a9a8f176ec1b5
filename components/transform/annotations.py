"""Reads the annotations of a preprocessing_fn's outputs from a trace that is made anyway.

TFT traces the function once more to read them, in `schema_inference.get_traced_metadata_fn`; the rules here
are the same.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import wrap_function
from tensorflow.python.framework import ops
from tensorflow_transform import schema_inference
from tensorflow_transform.common_types import TensorType


class Annotated:
    """A preprocessing_fn that remembers the outputs and annotations of its latest trace.

    Args:
        function: the user's preprocessing_fn.
        again: a function to call instead, which recreates the outputs and annotations of an earlier trace.

    Attributes:
        outputs: the features, by name.
        annotations: tensors and names of features, by TFT's names for the annotations.
        traced: the traced concrete function, set after the trace.
    """

    def __init__(self, function: Callable[..., Any], again: Callable[..., Any] | None = None) -> None:
        self._function = function
        self._again = again
        self.outputs: Mapping[str, TensorType] = {}
        self.annotations: Mapping[str, object] = {}
        self.traced: Any = None

    def __call__(self, inputs: Mapping[str, TensorType]) -> Any:
        """Return the features of a batch."""
        if self._again is not None:
            self.outputs, self.annotations = self._again(inputs)
            return self.outputs
        outputs = self._function(inputs)
        if isinstance(outputs, dict):
            self.outputs, self.annotations = dict(outputs), _annotations(ops.get_default_graph(), outputs)
        return outputs

    def flat(self) -> tuple[list[Any], Callable[[Sequence[Any]], tuple[Any, Any]]]:
        """Return all tensors, and a function that puts others in their place in outputs and annotations."""
        both = (self.outputs, self.annotations)
        flat = tf.nest.flatten(both, expand_composites=True)
        places = [place for place, one in enumerate(flat) if isinstance(one, tf.Tensor) and _is_symbolic(one)]

        def structure(found: Sequence[Any]) -> tuple[Any, Any]:
            filled = list(flat)
            for place, tensor in zip(places, found, strict=True):
                filled[place] = tensor
            outputs, annotations = tf.nest.pack_sequence_as(both, filled, expand_composites=True)
            return outputs, annotations

        return [flat[place] for place in places], structure

    def schema(self) -> Any:
        """Return the schema of the outputs."""
        evaluated = _evaluated(self.annotations, self.traced.graph)
        return schema_inference.infer_feature_schema_v2(
            self.traced.structured_outputs, lambda: evaluated, evaluate_schema_overrides=True
        )


def _annotations(graph: Any, outputs: Mapping[str, TensorType]) -> dict[str, object]:
    names = schema_inference._get_tensor_value_to_key_map(outputs)
    found: dict[str, object] = collections.defaultdict(list)
    found.update(
        schema_inference._get_schema_overrides(
            graph,
            names,
            schema_inference._TF_METADATA_TENSOR_COLLECTION,
            [
                schema_inference._TF_METADATA_TENSOR_MIN_COLLECTION,
                schema_inference._TF_METADATA_TENSOR_MAX_COLLECTION,
            ],
        )
    )
    found.update(
        schema_inference._get_schema_overrides(
            graph,
            names,
            schema_inference._TF_METADATA_EXTRA_ANNOTATION,
            [
                schema_inference._TF_METADATA_EXTRA_ANNOTATION_TYPE_URL,
                schema_inference._TF_METADATA_EXTRA_ANNOTATION_PROTO,
            ],
            schema_inference._TF_METADATA_EXTRA_ANNOTATION_GLOBAL,
        )
    )
    found[schema_inference._METADATA_SPARSE_OUTPUT_OVERRIDES_FIELD] = [
        schema_inference._get_sparse_output_annotations_v2(graph, names)
    ]
    return dict(found)


def _evaluated(annotations: Mapping[str, object], graph: Any) -> Mapping[str, object]:
    """Return the annotations as values: they are constants, or follow from the results of analyzers."""
    flat = tf.nest.flatten(annotations)
    places = [place for place, one in enumerate(flat) if isinstance(one, tf.Tensor) and _is_symbolic(one)]
    if places:
        traced = wrap_function.WrappedFunction(
            graph, variable_holder=wrap_function.VariableHolder(share_variables=True)
        )
        part = traced.prune(feeds=[], fetches=[flat[place] for place in places])
        for place, value in zip(places, part(), strict=True):
            flat[place] = value
    evaluated: Mapping[str, object] = tf.nest.pack_sequence_as(annotations, list(map(tf.constant, flat)))
    return evaluated


def _is_symbolic(tensor: tf.Tensor) -> bool:
    return not isinstance(tensor, ops.EagerTensor)
