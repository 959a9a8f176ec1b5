"""The strange requests that a served model must survive, from the columns that requests have. Pure."""

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
"""Values of a list that is longer than any in training: what is made of it must be cut somewhere."""


@dataclass(frozen=True)
class Column:
    """One raw column of a request.

    Attributes:
        name: in the tf.Example.
        kind: of its values.
        size: how many values a row has, >= 1.
        required: whether a row without it is refused by the parser, as the schema wants it.
        is_list: whether a row has any number of values; then `size` is 1.
    """

    name: str
    kind: Kind
    size: int = 1
    required: bool = False
    is_list: bool = False


@dataclass(frozen=True)
class Perturbation:
    """One change made to a real row.

    Attributes:
        columns: the columns that are changed, by their new values; None takes the column away.
        words: the change for people, e.g. `fare = -1e+09`.
        may_refuse: whether an error is an answer: a row without a required column.
    """

    columns: dict[str, tuple[Value, ...] | None]
    words: str
    may_refuse: bool = False


def perturbations(columns: Sequence[Column]) -> Iterator[Perturbation]:
    """Every perturbation of rows with those columns: one column at a time, then all that may be empty."""
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
