"""The signatures of a SavedModel: tensors by name in, tensors by name out. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

SERVE_RAW = "serve_raw"
"""Takes one tensor for each raw column."""
SERVING_DEFAULT = "serving_default"
"""Takes serialized tf.Examples."""


class PlainTensor(TypedDict):
    """A `TensorInfo` as JSON holds it."""

    dtype: str
    shape: list[int | None] | None


class PlainSignature(TypedDict):
    """A `Signature` as JSON holds it."""

    inputs: dict[str, PlainTensor]
    outputs: dict[str, PlainTensor]


@dataclass(frozen=True)
class TensorInfo:
    """One input or output of a signature.

    Attributes:
        dtype: TensorFlow's name, e.g. `int64`.
        shape: the first is the rows; None where it may be any; None as a whole where even the rank may.
        traced: of an input, the name by which a loaded model is called with it; "": its own.
    """

    dtype: str
    shape: tuple[int | None, ...] | None
    traced: str = ""

    def to_json(self) -> PlainTensor:
        """Plain data."""
        return {"dtype": self.dtype, "shape": list(self.shape) if self.shape is not None else None}


@dataclass(frozen=True)
class Signature:
    """One way to call a model: tensors by name in, tensors by name out."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]

    def to_json(self) -> PlainSignature:
        """Plain data."""
        return {
            "inputs": {name: tensor.to_json() for name, tensor in sorted(self.inputs.items())},
            "outputs": {name: tensor.to_json() for name, tensor in sorted(self.outputs.items())},
        }
