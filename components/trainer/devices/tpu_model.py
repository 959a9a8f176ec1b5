"""Finds what a TPU cannot compute in a model before it is trained on one, and names the layer.

A TPU runs what XLA compiles for fixed shapes: no strings, no unknown dimension except the batch, no Python in
between, no shape that depends on values. (`unique`, `boolean_mask`, `top_k` and non-maximum suppression do
compile, within bounds that XLA knows, and are not rejected.)
"""

from collections.abc import Callable, Iterator
from typing import Any

import keras

from slipway.components.errors import ComponentError
from slipway.components.trainer.trace_error import explain


def require_tpu_model(model: Any, *, batch_size: int) -> None:
    """Reject a model that no TPU can compute. Computes nothing, and needs no TPU.

    Args:
        model: built, on the CPU.
        batch_size: examples per replica.

    Raises:
        ComponentError: the model takes strings, has unknown dimensions, or an operation that XLA does not
            compile.
    """
    require_known_shapes(model)
    layers = list(_layers(model))
    if not getattr(model, "inputs", None):
        return  # a subclassed model has no shapes before its first batch
    compile_call = _compile_with_jax if keras.backend.backend() == "jax" else _compile_with_tensorflow
    failure = _failure(compile_call, model, model.input, batch_size)
    if failure is None:
        return
    for layer in layers:
        inputs = keras.tree.flatten(getattr(layer, "input", []))
        if inputs and (own := _failure(compile_call, layer, layer.input, batch_size)):
            raise _refused(layer, f"XLA does not compile it: {own}", "use keras.ops or other layers instead")
    raise ComponentError(f"the model cannot be compiled for a TPU: {failure}")


def require_known_shapes(model: Any) -> None:
    """Reject what can be seen without tracing: strings, sparse tensors, unknown dimensions.

    Args:
        model: built.

    Raises:
        ComponentError: a layer takes or returns one.
    """
    for layer in _layers(model):
        _require_known_shapes(layer)


def _require_known_shapes(layer: Any) -> None:
    try:
        tensors = [*keras.tree.flatten(layer.input), *keras.tree.flatten(layer.output)]
    except (AttributeError, ValueError):  # called several times, or never: left to the compiler
        return
    for tensor in tensors:
        if keras.backend.standardize_dtype(tensor.dtype) == "string":
            raise _refused(layer, "it works on strings", "convert them to integers in preprocessing_fn")
        if getattr(tensor, "sparse", False) or getattr(tensor, "ragged", False):
            kind = "sparse" if tensor.sparse else "ragged"
            raise _refused(
                layer, f"it works on {kind} tensors", "dense ones of a fixed shape, padded if need be"
            )
        if None in tensor.shape[1:]:
            raise _refused(
                layer,
                f"only the batch may be unknown in the shape {tuple(tensor.shape)}",
                "give keras.Input, Reshape or padding a fixed size",
            )


def _failure(
    compile_call: Callable[[Any, Any, int], None], layer: Any, inputs: Any, batch_size: int
) -> str | None:
    filtering = keras.config.is_traceback_filtering_enabled()
    # Keras rewrites errors to report the arguments of the call, but fails to rebuild those of JAX, which take
    # more than a message.
    keras.config.disable_traceback_filtering()
    try:
        compile_call(layer, inputs, batch_size)
    except Exception as error:  # XLA, TensorFlow and JAX each raise their own
        return _words(error)
    finally:
        if filtering:
            keras.config.enable_traceback_filtering()
    return None


def _words(error: Exception) -> str:
    if keras.backend.backend() == "jax" and (told := explain(error, "")).cause != "other":
        return f"{told.words}; {told.remedy}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def _compile_with_tensorflow(layer: Any, inputs: Any, batch_size: int) -> None:
    import tensorflow as tf

    specs = [tf.TensorSpec((batch_size, *each.shape[1:]), each.dtype) for each in keras.tree.flatten(inputs)]

    def call(*values: Any) -> Any:
        return layer(keras.tree.pack_sequence_as(inputs, values))

    # Specifications must be passed one by one, not as a structure.
    tf.function(call, jit_compile=True).experimental_get_compiler_ir(*specs)(stage="hlo")


def _compile_with_jax(layer: Any, inputs: Any, batch_size: int) -> None:
    import jax

    def spec(tensor: Any) -> Any:
        return jax.ShapeDtypeStruct((batch_size, *tensor.shape[1:]), tensor.dtype)

    jax.jit(lambda values: layer(values)).lower(keras.tree.map_structure(spec, inputs))


def _refused(layer: Any, rule: str, remedy: str) -> ComponentError:
    return ComponentError(
        f"a TPU cannot compute the layer {layer.name!r} ({type(layer).__name__}): {rule}", hint=remedy
    )


def _layers(model: Any) -> Iterator[Any]:
    """Yield the layers that compute, including those of nested models."""
    for layer in model._flatten_layers(include_self=False):
        if not isinstance(layer, keras.Model):
            yield layer
