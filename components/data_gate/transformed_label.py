"""Computes the transformed label, as the model learns it, if it depends only on the raw columns.

Results of analyzers (a vocabulary, a mean) are not known before Transform has run. Labels seldom depend on
them, so the part of the graph that computes the label is extracted and run on some rows.
"""

import importlib
import logging
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform import analyzer_nodes, analyzers, impl_helper, mappers
from tensorflow_transform.tf_metadata import schema_utils

from slipway.components.data_profile.columns import Column

_log = logging.getLogger(__name__)

# Arguments that do not affect the shape and type of a result.
_NAMES = ("name", "vocab_filename")


def compute_transformed_label(
    records: Sequence[bytes], *, preprocessing_fn: str, label: str, schema: str
) -> Column | None:
    """Return the transformed label of some rows; None if it needs an analyzer, or cannot be computed here.

    Args:
        records: serialized tf.Examples.
        preprocessing_fn: dotted path of the user's function.
        label: the name of the label among the function's outputs.
        schema: the schema of the raw examples, in protobuf's text format.
    """
    spec = schema_utils.schema_as_feature_spec(text_format.Parse(schema, schema_pb2.Schema())).feature_spec
    module, _, name = preprocessing_fn.rpartition(".")
    try:
        # Import the module before tft is patched: its own imports from tft must be the real functions.
        function = getattr(importlib.import_module(module), name)
        try:
            with _deduplicated_analyzers():
                return _compute(function, records, label, spec)
        except Exception:
            # A placeholder lacks what Transform records about a result, such as the size of a vocabulary.
            return _compute(function, records, label, spec)
    except Exception as error:  # the Transform node will report any error in the user's function
        _log.warning("the label %s was not checked: %s", label, error)
        return None


def _compute(
    function: Any, records: Sequence[bytes], label: str, spec: Mapping[str, object]
) -> Column | None:
    with tempfile.TemporaryDirectory() as folder:
        graph, inputs, outputs = impl_helper.trace_preprocessing_function(
            function,
            {name: _type_of(feature) for name, feature in spec.items()},
            use_tf_compat_v1=False,
            base_temp_dir=folder,
        )
        return _answers(graph, inputs, outputs[label], records, spec)


@contextmanager
def _deduplicated_analyzers() -> Iterator[None]:
    """Patch tft so that of several like calls that need an analysis, only the first creates its operations.

    Those operations are most of the cost of tracing a wide table. The other calls return placeholders, since
    nothing that needs an analyzer is computed here. Calls are alike if they differ only in names and in
    tensors of the same type and shape. The patch applies to the whole process: nothing else may be traced
    meanwhile. References to a patched function that outlive the patch, e.g. from an import inside the user's
    function, behave like the real function.
    """
    modules = {analyzers.__name__, mappers.__name__}
    calls = _Calls()
    functions = {
        name: partial(_call_once, calls, each)
        for name, each in vars(tft).items()
        if callable(each) and not isinstance(each, type) and each.__module__ in modules
    }
    try:
        with patch.dict(vars(tft), functions):
            yield
    finally:
        calls.is_over = True


@dataclass(slots=True)
class _Calls:
    """The known results by kind of call, and whether the patch has ended."""

    known: dict[Hashable, Any] = field(default_factory=dict)
    is_over: bool = False


def _call_once(calls: _Calls, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
    if calls.is_over:
        return function(*args, **more)
    known = calls.known
    kind = _kind(function, args, more)
    if kind in known:
        return tf.compat.v1.placeholder(known[kind].dtype, known[kind].shape)
    graph = tf.compat.v1.get_default_graph()
    before = len(graph.get_collection(analyzer_nodes.TENSOR_REPLACEMENTS))
    result = function(*args, **more)
    is_analyzed = len(graph.get_collection(analyzer_nodes.TENSOR_REPLACEMENTS)) > before
    if is_analyzed and kind is not None and isinstance(result, tf.Tensor):
        known[kind] = tf.TensorSpec.from_tensor(result)
    return result


def _kind(function: Callable[..., Any], args: Sequence[Any], more: Mapping[str, object]) -> Hashable | None:
    """Return a key that is equal for calls whose results have the same shape and type; None if unknown."""
    given = [*enumerate(args), *sorted(more.items())]
    kind = (
        function.__name__,
        *(
            (name, (value.dtype, value.shape) if isinstance(value, tf.Tensor) else value)
            for name, value in given
            if name not in _NAMES
        ),
    )
    try:
        hash(kind)
    except TypeError:
        return None
    return kind


def _answers(graph: Any, inputs: Any, label: Any, records: Sequence[bytes], spec: Any) -> Column | None:
    needed = _ancestors(label.op)
    # Until analyzers have run, TF.Transform traces their results as meaningless constants.
    analyzed = {each.tensor.op for each in graph.get_collection(analyzer_nodes.TENSOR_REPLACEMENTS)}
    if analyzed & needed:
        return None
    parts = {name: tf.nest.flatten(tensor, expand_composites=True) for name, tensor in inputs.items()}
    fed = {name: tensors for name, tensors in parts.items() if any(t.op in needed for t in tensors)}
    known = {tensor.op for tensors in fed.values() for tensor in tensors}
    if any(op.type == "Placeholder" and op not in known for op in needed):
        return None
    rows = tf.io.parse_example(list(records), {name: spec[name] for name in fed})
    feed = {
        tensor.name: value.numpy()
        for name, tensors in fed.items()
        for tensor, value in zip(tensors, tf.nest.flatten(rows[name], expand_composites=True), strict=True)
        if tensor.op in needed
    }
    with tf.Graph().as_default() as part:
        tf.graph_util.import_graph_def(_part(graph, needed), name="")
    with tf.compat.v1.Session(graph=part) as session:
        values = np.asarray(session.run(label.name, feed))
    if values.size != len(records):
        return None
    flat = values.reshape(-1)
    if flat.dtype == object:
        return np.array([value.decode("utf-8", "replace") for value in flat], dtype=object)
    return flat.astype(np.float64)


def _type_of(feature: Any) -> Any:
    if isinstance(feature, tf.io.FixedLenFeature):
        return tf.TensorSpec([None, *feature.shape], feature.dtype)
    if isinstance(feature, tf.io.VarLenFeature):
        return tf.SparseTensorSpec([None, None], feature.dtype)
    if isinstance(feature, tf.io.RaggedFeature) and not feature.partitions:
        return tf.RaggedTensorSpec([None, None], feature.dtype, 1, feature.row_splits_dtype)
    raise TypeError(f"{type(feature).__name__} features are not read here")


def _ancestors(op: Any) -> set[Any]:
    found, waiting = set(), [op]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += [tensor.op for tensor in each.inputs]
    return found


def _part(graph: Any, needed: set[Any]) -> Any:
    """Return the needed nodes, without their control dependencies, e.g. on vocabulary tables."""
    whole = graph.as_graph_def()
    names = {op.name for op in needed}
    part = tf.compat.v1.GraphDef(versions=whole.versions, library=whole.library)
    for node in whole.node:
        if node.name in names:
            kept = [name for name in node.input if not name.startswith("^")]
            del node.input[:]
            node.input.extend(kept)
            part.node.append(node)
    return part
