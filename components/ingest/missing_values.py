"""Finds the values that `data.null_values` calls missing, in columns of any type.

In a CSV they count in every column, in other formats only in the columns of `data.numbers` and `data.dates`.
A model that was trained on a CSV has therefore never seen them as values: its rows from another format are
read here as those of a CSV, where a number is missing if its text is.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.options import Options


@dataclass(frozen=True)
class MissingValues:
    """Values that mean a missing one, in every column of a format whose values have types.

    Attributes:
        texts: texts, compared as they are.
        numbers: the texts that are numbers, as such.
    """

    texts: frozenset[str] = frozenset()
    numbers: frozenset[float] = frozenset()

    @classmethod
    def of(cls, options: Options) -> "MissingValues":
        """Return the values that are missing in every column: none unless a CSV's rule applies."""
        if not options.follows_csv:
            return cls()
        found = (_number(text) for text in options.null_values)
        return cls(frozenset(("", *options.null_values)), frozenset(n for n in found if n is not None))

    def left_out_of(self, values: pa.Array) -> pa.Array:
        """Return the values, null where missing. Lists, which a CSV has not, are returned as they are.

        Args:
            values: of a type that a `Block` holds.
        """
        kind = values.type
        if pa.types.is_large_binary(kind):
            mask = _is_in(values, [text.encode() for text in self.texts], kind)
        elif pa.types.is_integer(kind):
            whole = [str(int(number)) for number in self.numbers if number.is_integer()]
            mask = _is_in(values.cast(pa.string()), whole, pa.string()) if whole else None
        elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            wanted = [*self.numbers, *_as_float32(self.numbers)]
            mask = _is_in(values.cast(pa.float64()), wanted, pa.float64())
        else:
            return values
        return values if mask is None else pc.if_else(mask, pa.scalar(None, kind), values)

    def remove_from(self, rows: Iterable[dict[str, object]]) -> None:
        """Replace the missing values in rows of plain values by None."""
        if not self.texts:
            return
        for row in rows:
            for name, value in row.items():
                if (value in self.texts) if isinstance(value, str) else self._is_missing_number(value):
                    row[name] = None

    def _is_missing_number(self, value: object) -> bool:
        return type(value) in (int, float) and value in self.numbers


def is_number(text: str) -> bool:
    """Return whether a cell of a CSV is read as a number, which NaN is not."""
    number = _number(text)
    return number is not None and not math.isnan(number)


def _is_in(values: pa.Array, wanted: Sequence[object], kind: pa.DataType) -> pa.Array | None:
    return pc.is_in(values, value_set=pa.array(wanted, kind)) if wanted else None


def _as_float32(numbers: Iterable[float]) -> list[float]:
    """Return the numbers as a file holds them in float32, with other digits: -99.9 as -99.9000015."""
    with np.errstate(over="ignore"):
        short = np.array([*numbers], np.float64).astype(np.float32)
    # 1e300 and 1e-300 have none, and infinity and 0 are other numbers.
    return [float(each) for each in short if np.isfinite(each) and each]


def _number(text: str) -> float | None:
    """Return the number that a cell of a CSV is read as; None if it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isinf(number) and "inf" not in text.lower() else number
