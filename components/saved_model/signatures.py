"""The signatures of a SavedModel, read from `saved_model.pb` without loading the model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVE_RAW = "serve_raw"
"""Takes one tensor for each raw column."""
SERVING_DEFAULT = "serving_default"
"""Takes serialized tf.Examples."""

_SERVE_TAG = "serve"


@dataclass(frozen=True)
class TensorInfo:
    """One input or output of a signature.

    Attributes:
        dtype: TensorFlow's name, e.g. `int64`.
        shape: the first is the rows; None where it may be any; None as a whole where even the rank may.
    """

    dtype: str
    shape: tuple[int | None, ...] | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"dtype": self.dtype, "shape": list(self.shape) if self.shape is not None else None}


@dataclass(frozen=True)
class Signature:
    """One way to call a model: tensors by name in, tensors by name out."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "inputs": {name: tensor.to_json() for name, tensor in sorted(self.inputs.items())},
            "outputs": {name: tensor.to_json() for name, tensor in sorted(self.outputs.items())},
        }


def read_signatures(model_folder: Path) -> dict[str, Signature]:
    """The signatures for serving by name; empty where the file is none that TensorFlow wrote."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    try:
        model = saved_model_pb2.SavedModel.FromString((model_folder / "saved_model.pb").read_bytes())
    except DecodeError:
        return {}
    return {
        name: Signature(_tensors(signature.inputs), _tensors(signature.outputs))
        for graph in model.meta_graphs
        if _SERVE_TAG in graph.meta_info_def.tags
        for name, signature in graph.signature_def.items()
        if not name.startswith("__")  # TensorFlow's own
    }


def _tensors(tensors: Mapping[str, Any]) -> dict[str, TensorInfo]:
    from tensorflow.core.framework import types_pb2

    return {
        name: TensorInfo(types_pb2.DataType.Name(tensor.dtype).removeprefix("DT_").lower(), _shape(tensor))
        for name, tensor in tensors.items()
    }


def _shape(tensor: Any) -> tuple[int | None, ...] | None:
    if tensor.tensor_shape.unknown_rank:
        return None
    return tuple(dim.size if dim.size >= 0 else None for dim in tensor.tensor_shape.dim)
