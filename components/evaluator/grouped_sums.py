"""Sums by slice and value: histograms whose bins are the values that occur. Pure."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_PENDING = 1 << 20
_FEWEST_ROWS_OF_A_SLICE = 256  # with fewer, a call for each slice takes longer than it saves


class GroupedSums:
    """Sums of rows with the same slice and the same value.

    Rows are buffered until there are about a million, and then merged, so that memory is bounded by the
    number of different values.

    Args:
        width: number of sums per value.
        most: number of different values in one slice above which the slice's values are rounded; None: never.
        rounded: the rounding function, from float64 [values] to float64 [values].
    """

    def __init__(
        self, width: int, *, most: int | None = None, rounded: Callable[[Floats], Floats] | None = None
    ) -> None:
        self._most = most
        self._rounded = rounded
        self.slices: Ints = np.zeros(0, np.int64)
        self.values: Floats = np.zeros(0)
        self.sums: Floats = np.zeros((0, width))
        self.rounded_slices: set[int] = set()
        self._pending: list[tuple[Ints, Floats, Floats]] = []
        self._waiting = 0

    def add(self, slices: Ints, values: Floats, sums: Floats) -> None:
        """Add rows.

        Args:
            slices: int64 [rows].
            values: [rows], no NaN.
            sums: [rows, width].
        """
        # Adding 0.0 turns -0.0 into 0.0: the two are one value, and must not be reported with a sign.
        self._pending.append((slices, values.astype(np.float64) + 0.0, sums.astype(np.float64)))
        self._waiting += slices.size
        if self._waiting >= _PENDING:
            self.compact()

    def compact(self) -> None:
        """Merge entries with the same slice and value."""
        if not self._pending:
            return
        slices, values, sums = (np.concatenate(parts) for parts in zip(*self._pending, strict=True))
        self._pending, self._waiting = [], 0
        self._join(slices, self._round_those(slices, values), sums)
        if self._most is not None and self.values.size > self._most:
            counts = np.bincount(self.slices)
            self._round_slices({int(place) for place in np.flatnonzero(counts > self._most)})

    def merge(self, other: "GroupedSums", places: Ints) -> None:
        """Add counts from elsewhere.

        Args:
            other: the counts; its slices are in another order.
            places: int64 [slices of other], the index of each here.
        """
        self.compact()
        other.compact()
        theirs = {int(places[place]) for place in other.rounded_slices}
        self._round_slices(theirs)
        # Values that `other` has already rounded are taken unchanged.
        slices = places[other.slices] if other.slices.size else other.slices
        whole = ~np.isin(slices, sorted(theirs))
        values = other.values.copy()
        values[whole] = self._round_those(slices[whole], values[whole])
        self._join(slices, values, other.sums)
        if self._most is not None and self.values.size > self._most:
            counts = np.bincount(self.slices)
            self._round_slices({int(place) for place in np.flatnonzero(counts > self._most)})

    def of_slice(self, place: int) -> tuple[Floats, Floats]:
        """Return the values of one slice, ascending, and their sums [values, width]; call `compact` first."""
        start, end = np.searchsorted(self.slices, [place, place + 1])
        return self.values[start:end], self.sums[start:end]

    def __getstate__(self) -> dict[str, object]:
        self.compact()
        return self.__dict__

    def _round_those(self, slices: Ints, values: Floats) -> Floats:
        if not self.rounded_slices or self._rounded is None:
            return values
        which = np.isin(slices, sorted(self.rounded_slices))
        values = values.copy()
        values[which] = self._rounded(values[which])
        return values

    def _round_slices(self, places: set[int]) -> None:
        new = places - self.rounded_slices
        if not new or self._rounded is None:
            return
        self.rounded_slices |= new
        which = np.isin(self.slices, sorted(new))
        values = self.values.copy()
        values[which] = self._rounded(values[which])
        slices, sums = self.slices, self.sums
        self.slices, self.values, self.sums = slices[:0], values[:0], sums[:0]
        self._join(slices, values, sums)

    def _join(self, slices: Ints, values: Floats, sums: Floats) -> None:
        slices = np.concatenate([self.slices, slices])
        values = np.concatenate([self.values, values])
        sums = np.concatenate([self.sums, sums])
        order = _order(slices, values)
        slices, values, sums = slices[order], values[order], np.take(sums, order, axis=0)
        is_first = np.ones(slices.size, bool)
        is_first[1:] = (slices[1:] != slices[:-1]) | (values[1:] != values[:-1])
        starts = np.flatnonzero(is_first)
        self.slices, self.values = slices[starts], values[starts]
        self.sums = np.add.reduceat(sums, starts, axis=0) if starts.size else sums


def _order(slices: Ints, values: Floats) -> Ints:
    """Return what `np.lexsort((values, slices))` returns: up to five times as fast if few slices are large.

    A slice of merged sums is a few sorted runs, which a stable sort only joins; all slices' runs are many.
    """
    count = int(slices.max(initial=0)) + 1
    if count * _FEWEST_ROWS_OF_A_SLICE > slices.size or count > np.iinfo(np.uint16).max:
        return np.lexsort((values, slices))
    # Of 16 bits, NumPy sorts by their digits.
    order = np.argsort(slices.astype(np.uint16), kind="stable")
    ends = np.cumsum(np.bincount(slices, minlength=count))
    for start, end in pairwise([0, *ends.tolist()]):
        rows = order[start:end]
        order[start:end] = rows[np.argsort(values[rows], kind="stable")]
    return order
