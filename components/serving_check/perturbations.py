"""Generates strange requests that a served model must survive, from the columns of requests. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "integer", "number"]
Value = bytes | int | float

UNSEEN = "☃ never seen in training".encode()
EXTREMES = (0, -1, 10**9, -(10**9))
"""Extreme numbers: the usual codes for "no value", and values far beyond any mix-up of units.

Larger ones would test the range of float32 (the square of 1e20 is not in it), not the model.
"""

LONG_LIST = 1000
"""Length of a list that is longer than any in training: the model must truncate it somewhere."""


@dataclass(frozen=True)
class Column:
    """One raw column of a request.

    Attributes:
        name: in the tf.Example.
        size: number of values per row, >= 1.
        required: whether the parser refuses a row without it, as the schema demands.
        is_list: whether a row has any number of values; then `size` is 1.
    """

    name: str
    kind: Kind
    size: int = 1
    required: bool = False
    is_list: bool = False


@dataclass(frozen=True)
class Perturbation:
    """A change of a real row.

    Attributes:
        columns: new values by column; None removes the column.
        words: the change for people, e.g. `fare = -1e+09`.
        may_refuse: whether an error is a valid answer: for a row without a required column.
    """

    columns: dict[str, tuple[Value, ...] | None]
    words: str
    may_refuse: bool = False


def marks_empty(column: Column, values: Sequence[Value]) -> bool:
    """Return True if `serve_raw` takes a value of a row for an empty cell: the last of a list, NaN, "" or the
    lowest integer. A required column has no empty cells, so that its values are taken as they are."""
    if column.required or not values:
        return False
    last = values[-1]
    return last != last or last in (b"", -(2**63))


def perturbations(columns: Sequence[Column]) -> Iterator[Perturbation]:
    """Yield every perturbation for these columns: one column at a time, then all optional columns missing."""
    for column in columns:
        yield Perturbation({column.name: None}, f"{column.name} missing", may_refuse=column.required)
        if column.is_list:
            yield Perturbation({column.name: ()}, f"{column.name} = []")
            values: dict[Kind, Value] = {"text": UNSEEN, "integer": 0, "number": 0.0}
            yield Perturbation(
                {column.name: (values[column.kind],) * LONG_LIST}, f"{column.name} with {LONG_LIST:,} values"
            )
        if column.kind == "text":
            yield Perturbation({column.name: (b"",) * column.size}, f'{column.name} = ""')
            yield Perturbation({column.name: (UNSEEN,) * column.size}, f"{column.name} never seen before")
        else:
            for value in EXTREMES:
                number = value if column.kind == "integer" else float(value)
                yield Perturbation({column.name: (number,) * column.size}, f"{column.name} = {value:g}")
    optional: dict[str, tuple[Value, ...] | None] = {c.name: None for c in columns if not c.required}
    if len(optional) > 1:
        yield Perturbation(optional, "every column missing that may be empty")
