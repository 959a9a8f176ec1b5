"""Poisson bootstrap: sums over rows, repeated under random row weights. Pure.

A replicate is the evaluation of a resample of the rows: each row counts as often as a draw from the Poisson
distribution of mean 1. The spread of a metric over the replicates shows how far chance moves its value.

The weights are a function of a row's position, so the result does not depend on which worker counts the row,
and both models and all slices see the same resamples: two models are compared on the same rows.

Sources: N. Chamandy, O. Muralidharan, A. Najmi, S. Naidu, Estimating uncertainty for massive data streams,
Google (2012). The hash: G. L. Steele, D. Lea, C. H. Flood, Fast splittable pseudorandom number generators,
OOPSLA (2014), SplitMix64 with the mixer of D. Stafford ("Mix13").
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from slipway.components.evaluator.grouped_sums import Floats, Ints

Array = Any  # of NumPy or SciPy

REPLICATES = 64
"""Number of replicates. The standard error of 64 is off by about 9 %, 1 / sqrt(2 * 63), which the t
distribution allows for. TensorFlow Model Analysis takes 20."""
MOST_SLICES_WITH_BOUNDS = 1000
"""With more slices, replicates would take gigabytes; then only the slice of all rows has bounds."""

# How many of the 256 byte values stand for the counts 0, 1, 2, ...: Poisson's probabilities to 1 / 256,
# chosen so that mean and variance are both exactly 1.
_OF_BYTES = (94, 95, 46, 16, 4, 1)
_WEIGHT = np.repeat(np.arange(len(_OF_BYTES)), _OF_BYTES).astype(np.float64)

_WORDS = REPLICATES // 8
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FILE_BITS = 40


def row_number(file: int, row: int) -> int:
    """Return a number that is unique to a row.

    Args:
        file: index of the row's file among all files, >= 0.
        row: index of the row in its file, 0 <= row < 2^40.
    """
    return (file << _FILE_BITS) + row


def row_weights(first: int, rows: int) -> Floats:
    """Return the count of each row in each replicate, [rows, REPLICATES].

    Args:
        first: number of the first row; the others follow it.
    """
    return weights_of(np.uint64(first) + np.arange(rows, dtype=np.uint64))


def weights_of(numbers: Array) -> Floats:
    """Return the weights, [numbers, REPLICATES], of rows or groups with these numbers, uint64."""
    counters = numbers[:, None] * np.uint64(_WORDS) + np.arange(1, _WORDS + 1, dtype=np.uint64)
    mixed: Array = counters * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    found: Floats = _WEIGHT[mixed.astype("<u8").view(np.uint8)]
    return found


@dataclass(frozen=True, slots=True)
class Memberships:
    """Pairs of a row of a batch and a slice that contains the row.

    Attributes:
        rows: int64 [memberships], index of the row.
        slices: int64 [memberships], index of the slice.
        many: number of slices.
    """

    rows: Ints
    slices: Ints
    many: int


@dataclass(frozen=True, slots=True)
class Samples:
    """A batch with the weights that its rows have in the replicates.

    Attributes:
        at: memberships in the slices that have confidence bounds.
        matrix: the same memberships as a sparse matrix, [slices, rows].
        weights: of the rows, [rows, REPLICATES].
    """

    at: Memberships
    matrix: Any
    weights: Floats

    @classmethod
    def of(cls, at: Memberships, weights: Floats) -> Self:
        """Return the samples of rows with these weights."""
        ones = np.ones(at.rows.size)
        return cls(
            at, sparse.csr_matrix((ones, (at.slices, at.rows)), shape=(at.many, len(weights))), weights
        )


class Replicates:
    """Sums over rows under the weights of each replicate, by name.

    Attributes:
        sums: arrays of [slices, cells, REPLICATES].
    """

    def __init__(self) -> None:
        self.sums: dict[str, Array] = {}

    def add(self, name: str, values: Floats, samples: Samples) -> None:
        """Add rows that count in every cell.

        Args:
            values: [rows, cells], what a row adds to each cell.
        """
        sums = self._at_least(name, samples.at.many, values.shape[1], np.float64)
        with np.errstate(invalid="ignore"):  # infinity times a weight of 0 is NaN; there are no bounds then
            for cell, column in enumerate(values.T):
                sums[: samples.at.many, cell] += samples.matrix @ (column[:, None] * samples.weights)

    def add_to_cells(self, name: str, cells: Ints, many: int, factors: Floats, samples: Samples) -> None:
        """Add rows that count in a few of many cells.

        Args:
            cells: [rows, some], the cells that a row counts in.
            factors: [rows, some], what the row adds to each of these cells; 0 for nothing.
        """
        sums = self._at_least(name, samples.at.many, many, np.float32)
        factors = factors[samples.at.rows]
        places, some = np.nonzero(factors)
        rows = samples.at.rows[places]
        there, inverse = np.unique(samples.at.slices[places] * many + cells[rows, some], return_inverse=True)
        matrix = sparse.csr_matrix(
            (factors[places, some], (inverse, rows)), shape=(there.size, len(samples.weights))
        )
        sums.reshape(-1, REPLICATES)[there] += (matrix @ samples.weights).astype(np.float32)

    def merge(self, other: "Replicates", places: Ints, many: int) -> None:
        """Add the counts of another process.

        Args:
            other: the counts; its slices are in another order.
            places: the index here of each slice of `other`.
            many: number of slices that have bounds here; counts of other slices are dropped.
        """
        for name, theirs in other.sums.items():
            mine = self._at_least(name, many, theirs.shape[1], theirs.dtype)
            at = places[: len(theirs)]
            mine[at[at < many]] += theirs[at < many]

    def keep_only(self, place: int | None) -> None:
        """Drop all slices but the one at `place`; None drops all."""
        for name, sums in self.sums.items():
            kept = np.zeros_like(sums[: 0 if place is None else place + 1])
            if place is not None and place < len(sums):
                kept[place] = sums[place]
            self.sums[name] = kept

    def _at_least(self, name: str, many: int, cells: int, kind: Any) -> Array:
        sums = self.sums.get(name)
        if sums is None or len(sums) < many:
            grown = np.zeros((many, cells, REPLICATES), kind)
            if sums is not None:
                grown[: len(sums)] = sums
            self.sums[name] = sums = grown
        return sums
