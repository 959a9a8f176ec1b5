"""Describes a model's inputs: one `Feature` for each transformed column."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, get_args

from slipway.components.errors import ComponentError

Dtype = Literal["float32", "int64", "uint8"]
_MODEL_DTYPES = {"float32": "float32", "int64": "int32", "uint8": "uint8"}


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
            and serving feed "int64" to the model as int32, which every device supports.
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

    def to_json(self) -> PlainFeature:
        """Return the feature as plain JSON values; `from_json` reads them back."""
        return {
            "name": self.name,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "categories": self.categories,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Feature":
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
