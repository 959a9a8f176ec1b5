"""Accesses rows of a sample. Pure."""

from collections.abc import Iterable, Mapping
from itertools import chain, islice

from slipway.components.data_profile.columns import Column
from slipway.components.even_sample import even_sample

RUNS = 64
"""The least number of runs of neighbours in a sample of a file. Single rows would not show that many repeat
one that lies a little before."""


def row_at(sample: Mapping[str, Column], row: int) -> dict[str, float | str | None]:
    """Return a row of a sample as plain values by column; None for a missing value."""
    return {name: _plain(column[row]) for name, column in sample.items()}


def spread(lists: Iterable[list[bytes]], rows: int) -> list[bytes]:
    """Return runs of neighbouring records spread evenly over all of them, in their order.

    The first ones alone would be of one day, or of one class, where rows are in order.

    Args:
        rows: the number of records, >= 1, rounded up to whole runs; all if there are no more.
    """
    records, size = chain.from_iterable(lists), -(-rows // RUNS)
    runs = iter(lambda: list(islice(records, size)), [])
    return list(chain.from_iterable(even_sample(runs, most=-(-rows // size))))


def _plain(value: object) -> float | str | None:
    if value is None or isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]  # a column holds texts or numbers
    return number if number == number else None
