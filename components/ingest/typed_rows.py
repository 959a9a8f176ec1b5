"""The rows of a block as values of the columns' types, and the rows that hold others."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from components.ingest.blocks import Block, InputFile, Reject
from components.ingest.column_types import Columns, ColumnType, as_type, parse, parse_guessed
from components.ingest.example_encoding import ExampleEncoder
from components.ingest.formats import format_of
from components.ingest.options import Options

_WRONG_TYPE = {ColumnType.INT: "not a whole number", ColumnType.FLOAT: "not a number"}


class GuessError(Exception):
    """A cell does not fit the type that was guessed for its column from earlier ones."""


@dataclass(frozen=True, slots=True)
class ExampleRows:
    """Rows of a file as examples.

    Attributes:
        records: serialised Examples.
        rows: the number of each in its file, from 0; rejected rows count too.
        rejects: the rows of the same stretch that are no examples, each with its number.
    """

    records: list[bytes]
    rows: npt.NDArray[np.int64]
    rejects: list[tuple[int, Reject]]


def example_rows(
    file: InputFile, options: Options, columns: Columns, *, known: Columns
) -> Iterator[ExampleRows]:
    """The rows of a file as examples, a block at a time, in the order of the file.

    Args:
        file: of the format that the options name.
        options: how it is read.
        columns: the name and type of each feature; a column that the file lacks has no value, others that it
            has are passed over.
        known: types of such others, so that they need not be looked for.

    Raises:
        FileError: the file cannot be read to its end.
    """
    encoder = ExampleEncoder(columns)
    first = 0
    form = format_of(options)
    there = form.infer(file, options, {**known, **columns})
    for block in form.read(file, options, there):
        typed, wrong = typed_rows(block, columns)
        numbers, apart = row_numbers(block, first)
        good = np.ones(block.rows, dtype=np.bool_)
        good[list(wrong)] = False
        records = block.records if block.records is not None else encoder.encode(typed, block.rows)
        rejects = sorted(
            [*apart, *((int(numbers[row]), reject) for row, reject in wrong.items())],
            key=lambda numbered: numbered[0],
        )
        yield ExampleRows(records.filter(pa.array(good)).to_pylist(), numbers[good], rejects)
        first += block.rows + len(block.rejects)


def typed_rows(
    block: Block, columns: Columns, *, guessed: Collection[str] = ()
) -> tuple[dict[str, pa.Array], dict[int, Reject]]:
    """The columns' values, one for each row, and by row the first value that is of another type.

    Args:
        block: of any format; a column that it lacks has no value.
        columns: the name and type of each.
        guessed: columns of text cells whose type is a guess and no rule.

    Raises:
        GuessError: a guess is wrong.
    """
    typed: dict[str, pa.Array] = {}
    rejects: dict[int, Reject] = {}
    for name, kind in columns.items():
        if name not in block.columns:
            if block.records is None:
                typed[name] = as_type(pa.nulls(block.rows), kind)[0]
            continue
        values = block.columns[name]
        if block.is_text and name in guessed:
            if (found := parse_guessed(values, kind)) is None:
                raise GuessError(name)
            typed[name] = found
            continue
        typed[name], bad = parse(values, kind) if block.is_text else as_type(values, kind)
        for row in np.flatnonzero(bad).tolist():
            cell = str(values[row].as_py())[:80]
            rejects.setdefault(
                row, Reject(_WRONG_TYPE.get(kind, "no value expected"), block.find(row), name, repr(cell))
            )
    return typed, rejects


def row_numbers(block: Block, first: int) -> tuple[npt.NDArray[np.int64], list[tuple[int, Reject]]]:
    """The number in the file of each row of a block, and of each row that it rejected.

    Args:
        block: of the file.
        first: how many rows stand before it, those included that were rejected.
    """
    rejects = sorted(block.rejects, key=lambda reject: reject.place.offset)
    # How many rows stand before each reject; finding a row's place is dear, so only a few are looked up.
    before = [_rows_before(block, reject.place.offset) for reject in rejects]
    rows = np.arange(block.rows, dtype=np.int64)
    numbers = first + rows + np.searchsorted(np.array(before, dtype=np.int64), rows, side="right")
    return numbers, [(first + rows_before + i, rejects[i]) for i, rows_before in enumerate(before)]


def _rows_before(block: Block, offset: int) -> int:
    low, high = 0, block.rows
    while low < high:
        middle = (low + high) // 2
        if block.find(middle).offset < offset:
            low = middle + 1
        else:
            high = middle
    return low
