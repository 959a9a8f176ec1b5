"""Single rows of a sample. Pure."""

from collections.abc import Mapping

from components.data_profile.columns import Column


def row_at(sample: Mapping[str, Column], row: int) -> dict[str, float | str | None]:
    """One row of a sample as plain values by column; None where it has no value."""
    return {name: _plain(column[row]) for name, column in sample.items()}


def _plain(value: object) -> float | str | None:
    if value is None or isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]  # a column holds texts or numbers
    return number if number == number else None
