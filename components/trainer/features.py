"""Describes a model's inputs: one `Feature` for each transformed column."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypedDict, get_args

from slipway.components.errors import ComponentError

Dtype = Literal["float32", "int64", "uint8"]
_MODEL_DTYPES = {"float32": "float32", "int64": "int32", "uint8": "uint8"}
_BEYOND_INT32 = re.compile(r"the transformed column (.+) holds (-?\d+), beyond 32 bits", re.DOTALL)


class PlainFeature(TypedDict):
    """The JSON form of a `Feature`."""

    name: str
    dtype: Dtype
    shape: list[int]
    categories: int | None


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One transformed column, as the Transform node wrote it.

    Attributes:
        name: the column's name in the transformed examples.
        dtype: "float32", "int64", or "uint8" for an image that the examples hold as its raw bytes. Training
            and serving feed "int64" to the model as int32, which every device supports: training refuses
            values that do not fit, and in a request they become the nearest that does.
        shape: of one example, without the batch; every dimension >= 1. A scalar column has the shape (1,).
            In the features of a model that is trained on batches of several lengths, see `buckets`, the first
            dimension of such a column is None.
        categories: the number of categories of an integer column with the values 0 .. categories - 1; else
            None.

    Raises:
        ComponentError: a value breaks one of these rules.
    """

    name: str
    dtype: Dtype
    shape: tuple[int, ...] = (1,)
    categories: int | None = None

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise ComponentError(f"a feature needs a name, not {self.name!r}")
        if self.dtype not in get_args(Dtype):
            raise ComponentError(
                f"feature {self.name}: dtype {self.dtype!r} is none of {', '.join(get_args(Dtype))}",
                hint="let preprocessing_fn turn strings into integers (tft.compute_and_apply_vocabulary), "
                "or name images that are raw bytes in train.images",
            )
        known = self.shape[1:] if self.shape and self.shape[0] is None else self.shape
        if not self.shape or any(not isinstance(size, int) or size < 1 for size in known):
            raise ComponentError(f"feature {self.name}: shape {self.shape} must hold whole numbers >= 1")
        if self.categories is None:
            return
        if self.dtype != "int64" or not isinstance(self.categories, int) or self.categories < 1:
            raise ComponentError(
                f"feature {self.name}: categories ({self.categories}) must be >= 1, of an int64 column"
            )

    @property
    def model_dtype(self) -> str:
        """The dtype of the model's input."""
        return _MODEL_DTYPES[self.dtype]

    @property
    def may_exceed_int32(self) -> bool:
        """Whether a row may hold a whole number that `model_dtype` lacks."""
        return self.dtype == "int64" and not (self.categories and self.categories <= 2**31)

    def to_json(self) -> PlainFeature:
        """Return the feature as plain JSON values; `from_json` reads them back."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "categories": self.categories,
        }

    @classmethod
    def from_json(cls, values: object) -> "Feature":
        """Read what `to_json` wrote.

        Raises:
            ComponentError: a key is missing or unknown, or a value breaks a rule of `Feature`.
        """
        keys = {"name", "dtype", "shape", "categories"}
        if not isinstance(values, Mapping) or set(values) != keys:
            raise ComponentError(f"a feature has the keys {', '.join(sorted(keys))}; found {values!r}")
        if not isinstance(values["shape"], list):
            raise ComponentError(f"feature {values['name']}: shape must be a list, not {values['shape']!r}")
        return cls(
            name=values["name"],
            dtype=values["dtype"],
            shape=tuple(values["shape"]),
            categories=values["categories"],
        )


def beyond_int32(name: str) -> tuple[str, str]:
    """Return the sentence in which training refuses a value, before and after it; see `refused_value`."""
    return f"the transformed column {name} holds ", ", beyond 32 bits"


def refused_value(text: str) -> ComponentError | None:
    """Return the error for an integer that does not fit into 32 bits, if a text of TensorFlow tells of one.

    Rows are parsed inside TensorFlow, whose error has the sentence of `beyond_int32` in it.
    """
    found = _BEYOND_INT32.search(text)
    if found is None:
        return None
    return ComponentError(
        f"the transformed column {found[1]} holds {found[2]}, beyond 32 bits; models take whole numbers as "
        "int32, from -2,147,483,648 to 2,147,483,647",
        hint="let preprocessing_fn return an id as a code (tft.hash_strings of tf.strings.as_string, or a "
        "vocabulary), and a quantity, label or weight as a float (tf.cast, tft.scale_to_z_score); name a "
        "column that the model does not take in transform.pass_through",
    )
