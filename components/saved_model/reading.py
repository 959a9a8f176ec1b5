"""Reads the signatures of a SavedModel from `saved_model.pb`, without loading the model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.components.saved_model.input_names import traced_name
from slipway.components.saved_model.quiet_tensorflow import import_tensorflow
from slipway.components.saved_model.signatures import Signature, TensorInfo

_SERVE_TAG = "serve"


def read_signatures(model_folder: Path) -> dict[str, Signature]:
    """Return the signatures for serving by name; empty if the file is not a valid SavedModel."""
    import_tensorflow()
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    try:
        model = saved_model_pb2.SavedModel.FromString((model_folder / "saved_model.pb").read_bytes())
    except DecodeError:
        return {}
    return {
        name: Signature(_tensors(signature.inputs, name), _tensors(signature.outputs, name))
        for graph in model.meta_graphs
        if _SERVE_TAG in graph.meta_info_def.tags
        for name, signature in graph.signature_def.items()
        if not name.startswith("__")  # TensorFlow's own
    }


def _tensors(tensors: Mapping[str, Any], signature: str) -> dict[str, TensorInfo]:
    from tensorflow.core.framework import types_pb2

    return {
        name: TensorInfo(
            types_pb2.DataType.Name(tensor.dtype).removeprefix("DT_").lower(),
            _shape(tensor),
            traced_name(tensor.name, signature),
        )
        for name, tensor in tensors.items()
    }


def _shape(tensor: Any) -> tuple[int | None, ...] | None:
    if tensor.tensor_shape.unknown_rank:
        return None
    return tuple(dim.size if dim.size >= 0 else None for dim in tensor.tensor_shape.dim)
