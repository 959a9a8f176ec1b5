"""Sums by slice and value: histograms whose bins are the values that occur. Pure."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST_DIGITS = 3
"""Values are rounded to at least that many digits, and then no more are taken away."""

_PENDING = 1 << 20
_FEWEST_ROWS_OF_A_SLICE = 256  # with fewer, a call for each slice takes longer than it saves


class GroupedSums:
    """Sums of rows with the same slice and the same value.

    Rows are buffered until there are about a million, and then merged, so that memory is bounded by the
    number of different values.

    Args:
        width: number of sums per value.
        most: number of different values in one slice above which the slice's values are rounded; None: never.
        rounded: the rounding function, from float64 [values] and a number of digits to float64 [values].
        digits: returns to how many digits a slice's values are rounded, >= `LEAST_DIGITS`; no more for more
            values.

    Attributes:
        digits: the number of digits of each slice that is rounded.
    """

    def __init__(
        self,
        width: int,
        *,
        most: int | None = None,
        rounded: Callable[[Floats, int], Floats] | None = None,
        digits: Callable[[Floats], int] | None = None,
    ) -> None:
        self._most = most
        self._rounded = rounded
        self._digits_for = digits
        self.slices: Ints = np.zeros(0, np.int64)
        self.values: Floats = np.zeros(0)
        self.sums: Floats = np.zeros((0, width))
        self.digits: dict[int, int] = {}
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
        self._bound()

    def merge(self, other: "GroupedSums", places: Ints) -> None:
        """Add counts from elsewhere.

        Args:
            other: the counts; its slices are in another order.
            places: int64 [slices of other], the index of each here.
        """
        self.compact()
        other.compact()
        theirs = {int(places[place]): digits for place, digits in other.digits.items()}
        self._round_slices(theirs)
        # Values that `other` has already rounded to as many digits are taken unchanged.
        slices = places[other.slices] if other.slices.size else other.slices
        alike = [place for place, digits in theirs.items() if digits == self.digits[place]]
        whole = ~np.isin(slices, sorted(alike))
        values = other.values.copy()
        values[whole] = self._round_those(slices[whole], values[whole])
        self._join(slices, values, other.sums)
        self._bound()

    def of_slice(self, place: int) -> tuple[Floats, Floats]:
        """Return the values of one slice, ascending, and their sums [values, width]; call `compact` first."""
        start, end = np.searchsorted(self.slices, [place, place + 1])
        return self.values[start:end], self.sums[start:end]

    def __getstate__(self) -> dict[str, object]:
        self.compact()
        return self.__dict__

    def _bound(self) -> None:
        """Round the slices with too many values; those rounded before to fewer digits if that is enough now.

        How many digits a slice has at the end depends on all of its values, not on the parts they came in.
        """
        if self._most is None or (self.values.size <= self._most and not self.digits):
            return
        counts = np.bincount(self.slices)
        full = {int(place) for place in np.flatnonzero(counts > self._most)}
        open_ = {place for place in full | self.digits.keys() if self.digits.get(place) != LEAST_DIGITS}
        self._round_slices({place: self._digits_of(place) for place in sorted(open_)})

    def _digits_of(self, place: int) -> int:
        return LEAST_DIGITS if self._digits_for is None else self._digits_for(self.of_slice(place)[0])

    def _round_those(self, slices: Ints, values: Floats) -> Floats:
        if not self.digits or self._rounded is None:
            return values
        values = values.copy()
        for digits in set(self.digits.values()):
            which = np.isin(slices, [place for place, each in self.digits.items() if each == digits])
            values[which] = self._rounded(values[which], digits)
        return values

    def _round_slices(self, wanted: Mapping[int, int]) -> None:
        """Round slices to so many digits, unless they have no more already."""
        new = {place: many for place, many in wanted.items() if many < self.digits.get(place, many + 1)}
        if not new or self._rounded is None:
            return
        self.digits |= new
        values = self.values.copy()
        for digits in set(new.values()):
            which = np.isin(self.slices, [place for place, each in new.items() if each == digits])
            values[which] = self._rounded(values[which], digits)
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
    # NumPy sorts numbers of 16 bits by their digits, which is faster.
    order = np.argsort(slices.astype(np.uint16), kind="stable")
    ends = np.cumsum(np.bincount(slices, minlength=count))
    for start, end in pairwise([0, *ends.tolist()]):
        rows = order[start:end]
        order[start:end] = rows[np.argsort(values[rows], kind="stable")]
    return order
