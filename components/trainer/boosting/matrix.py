"""Converts features by name to the matrices that scikit-learn takes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

MAX_CATEGORIES = 255
"""HistGradientBoosting's limit; codes of more categories are used as numbers, in their order."""
BENDS = 4
"""Places at which the effect of a number may bend in a linear model."""
_MOST_BENT = 100
# How far values of usual size differ by rounding, in steps of float32: a few, times what scaling makes of
# them.
_STEPS = 16


def is_text(feature: Feature) -> bool:
    """Return True if a feature holds several of many codes per row: hashed words, in no meaningful order."""
    return feature.categories is not None and feature.categories > MAX_CATEGORIES and feature.shape != (1,)


Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Columns:
    """The columns of the matrix that the trees see: categories first, then numbers.

    Attributes:
        names: the feature of each column, in order; a feature of n values per row has n columns.
        categories: the number of categories of each categorical column; these columns come first.
    """

    names: tuple[str, ...]
    categories: tuple[int, ...]

    @classmethod
    def of(cls, features: Mapping[str, Feature]) -> "Columns":
        """Return the columns that these features make.

        Raises:
            ComponentError: a feature is an image.
        """
        if images := [name for name, feature in features.items() if feature.dtype == "uint8"]:
            raise ComponentError(
                f"boosted trees take numbers and categories; {images[0]} is an image",
                hint="set train.model to slipway.components.trainer.models.cnn.build_model",
            )
        found = [
            (name, feature.categories)
            for name, feature in sorted(features.items())
            for _ in range(int(np.prod(feature.shape)))
        ]
        coded = [(name, count) for name, count in found if count is not None and count <= MAX_CATEGORIES]
        numbers = [name for name, count in found if count is None or count > MAX_CATEGORIES]
        return cls(
            names=(*(name for name, _ in coded), *numbers), categories=tuple(count for _, count in coded)
        )

    @property
    def features(self) -> list[str]:
        """The features, each once, in the order of their columns."""
        return list(dict.fromkeys(self.names))

    def matrix(self, values: Mapping[str, npt.NDArray[Any]]) -> Matrix:
        """Return the features as one matrix, float32 [rows, columns], with categories as their codes.

        Args:
            values: by feature, [rows, ...].

        Raises:
            ComponentError: a value is not finite.
        """
        parts = {name: np.asarray(values[name]) for name in self.features}
        for name, part in parts.items():
            if not np.isfinite(part).all():
                raise ComponentError(
                    f"the feature {name} has values that are not finite",
                    hint="fill them in preprocessing_fn, and add a feature that says where",
                )
        flat = [part.reshape(len(part), -1).astype(np.float32) for part in parts.values()]
        return np.concatenate(flat, axis=1)

    def one_hot(self, matrix: Matrix) -> Matrix:
        """Return the same rows as a linear model takes them: a column for each category, then the numbers."""
        parts = []
        for place, count in enumerate(self.categories):
            codes = np.clip(matrix[:, place].astype(np.int64), 0, count - 1)
            parts.append(np.eye(count, dtype=np.float32)[codes])
        return np.concatenate([*parts, matrix[:, len(self.categories) :]], axis=1)

    @property
    def bent(self) -> int:
        """How many numbers' effects may bend in a linear model: all, unless there are too many."""
        numbers = len(self.names) - len(self.categories)
        return numbers if numbers <= _MOST_BENT else 0

    def bends(self, matrix: Matrix) -> Matrix:
        """Return where they bend, [bent, BENDS]: at quantiles, so that as many rows lie between any two."""
        levels = np.arange(1, BENDS + 1) / (BENDS + 1)
        return np.quantile(matrix[:, len(self.categories) :], levels, axis=0).T.astype(np.float32)

    def beyond(self, matrix: Matrix, bends: Matrix) -> Matrix:
        """Return how far each number lies beyond each of its bends, or 0, [rows, bent * BENDS]."""
        found: Matrix = np.maximum(matrix[:, len(self.categories) :, np.newaxis] - bends, 0)
        return found.reshape(len(matrix), -1)


def merge_rounding_duplicates(column: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return a column with values that lie within rounding of each other replaced by the least of them.

    The last bit of a sine or a logarithm depends on how many rows are computed at once. With a threshold
    between two such values, a row would get another answer alone than in a batch. Values that are so dense
    that no gap separates such groups stay as they are.

    Args:
        column: finite, [rows].
    """
    found, places = np.unique(column, return_inverse=True)
    if len(found) < 2:
        return column
    apart = _STEPS * float(np.finfo(np.float32).eps) * float(np.median(np.abs(found)))
    begins = np.concatenate(([True], np.diff(found.astype(np.float64)) > apart))
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(found)) - 1
    is_narrow = found[last] - found[first] <= apart
    group = np.cumsum(begins) - 1
    return np.where(is_narrow[group], found[first][group], found)[places]
