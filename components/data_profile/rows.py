"""Accesses rows of a sample. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from slipway.components.data_profile.columns import Column


def row_at(sample: Mapping[str, Column], row: int) -> dict[str, float | str | None]:
    """Return a row of a sample as plain values by column; None for a missing value."""
    return {name: _plain(column[row]) for name, column in sample.items()}


def within(records: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """Yield records up to the one with which their total size reaches `most_bytes`."""
    size_bytes = 0
    for record in records:
        yield record
        size_bytes += len(record)
        if size_bytes >= most_bytes:
            return


def _plain(value: object) -> float | str | None:
    if value is None or isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]  # a column holds texts or numbers
    return number if number == number else None
