"""Measures how far two sets of answers to the same rows differ. Pure (NumPy only)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Difference:
    """The largest difference between two sets of answers.

    Attributes:
        largest: |a - b| / max(1, |b|), >= 0: absolute for probabilities, relative for large numbers; infinite
            if the shapes differ or only one of the two is a number.
        row: the row of the largest difference, counted from 0.
    """

    largest: float
    row: int
    got: float | None
    wanted: float | None

    def to_json(self) -> dict[str, float | str | None]:
        """Return plain data; an infinite difference is the text `inf`, because JSON has no number for it."""
        values = asdict(self)
        for name in ("largest", "got", "wanted"):
            value = values[name]
            if value is not None and not np.isfinite(value):
                values[name] = str(value)
        return values


def difference(got: np.ndarray, wanted: np.ndarray) -> Difference:
    """Compare two sets of answers, each [rows, ...]; NaN in both counts as equal."""
    if got.size == 0 == wanted.size:
        return Difference(0.0, 0, None, None)
    got = np.asarray(got, np.float64).reshape(len(got), -1)
    wanted = np.asarray(wanted, np.float64).reshape(len(wanted), -1)
    if got.shape != wanted.shape:
        return Difference(float("inf"), 0, None, None)
    with np.errstate(invalid="ignore"):
        apart = np.abs(got - wanted) / np.maximum(1.0, np.abs(wanted))
    apart = np.where((np.isnan(got) & np.isnan(wanted)) | (got == wanted), 0.0, apart)
    apart = np.where(np.isnan(apart), np.inf, apart)
    row, column = np.unravel_index(int(apart.argmax()), apart.shape)
    return Difference(
        float(apart[row, column]), int(row), float(got[row, column]), float(wanted[row, column])
    )


def feature_differences(
    got: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]
) -> dict[str, Difference]:
    """Compare features by name, largest difference first; a missing feature differs infinitely."""
    found = {
        name: difference(got[name], values) if name in got else Difference(float("inf"), 0, None, None)
        for name, values in wanted.items()
    }
    return dict(sorted(found.items(), key=lambda item: -item[1].largest))
