"""The signatures of a SavedModel: named input and output tensors. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

SERVE_RAW = "serve_raw"
"""The signature that takes one tensor for each raw column."""
SERVING_DEFAULT = "serving_default"
"""The signature that takes serialized tf.Examples."""
TRANSFORM_FEATURES = "transform_features"
"""The signature that takes them, too, and returns the transformed columns, not a prediction."""


class PlainTensor(TypedDict):
    """A `TensorInfo` in JSON."""

    dtype: str
    shape: list[int | None] | None


class PlainSignature(TypedDict):
    """A `Signature` in JSON."""

    inputs: dict[str, PlainTensor]
    outputs: dict[str, PlainTensor]


@dataclass(frozen=True)
class TensorInfo:
    """One input or output of a signature.

    Attributes:
        dtype: TensorFlow's name, e.g. `int64`.
        shape: sizes, the first of which is the number of rows; a size is None if it may vary, and the whole
            is None if even the rank may vary.
        traced: for an input, the name by which a loaded model takes it; "": its own.
    """

    dtype: str
    shape: tuple[int | None, ...] | None
    traced: str = ""

    def to_json(self) -> PlainTensor:
        """Return plain data."""
        return {"dtype": self.dtype, "shape": list(self.shape) if self.shape is not None else None}


@dataclass(frozen=True)
class Signature:
    """One way to call a model: named tensors in, named tensors out."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]

    def to_json(self) -> PlainSignature:
        """Return plain data."""
        return {
            "inputs": {name: tensor.to_json() for name, tensor in sorted(self.inputs.items())},
            "outputs": {name: tensor.to_json() for name, tensor in sorted(self.outputs.items())},
        }
