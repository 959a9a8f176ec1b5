"""Extracts what a request log holds of each row: the configured columns, and the answer. Pure.

Nothing else of a request is read, so no other column can get into the log.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.example_message import parse_example

Array = npt.NDArray[Any]

_NO_INTEGER = -(2**63)  # the value of an empty cell in a request's integer column


def rows_of(
    inputs: Mapping[str, Array], columns: Sequence[str], needed: Collection[str] = ()
) -> Iterator[dict[str, object]]:
    """Yield the named columns of each row of a request; None where a row has no value.

    Args:
        inputs: an array for each input of the signature, one entry per row; or one array of serialized
            tf.Examples.
        columns: the columns to take; one that the request lacks is None.
        needed: those that have a value in every row: an empty text there is one.
    """
    only = next(iter(inputs.values())) if len(inputs) == 1 else None
    if only is not None and only.dtype == object and only.ndim == 1 and not inputs.keys() & set(columns):
        yield from rows_of_examples(only.tolist(), columns)
        return
    cells = [_cells(inputs[name], name in needed) if name in inputs else None for name in columns]
    for row in range(_length(inputs)):
        yield {name: each[row] if each else None for name, each in zip(columns, cells, strict=True)}


def rows_of_examples(records: Sequence[bytes], columns: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield the named columns of serialized tf.Examples; None for a missing value or an invalid record.

    An empty text is a value: what is missing is not in an example.
    """
    for record in records:
        example = parse_example(record)
        features = example.features.feature if example is not None else {}
        yield {name: _of_feature(features.get(name)) for name in columns}


def rows_of_many_examples(records: Sequence[bytes], columns: Sequence[str]) -> Sequence[Mapping[str, object]]:
    """Return the result of `rows_of_examples`.

    If rows have at most one value per column, it takes a quarter of the time.
    """
    from slipway.components.example_batches import ExampleDecoder

    try:
        batch = ExampleDecoder().decode(records) if records else None
    except Exception:  # a record is not a tf.Example, or features differ in type: tfx_bsl may raise any error
        batch = None
    cells = batch and [_column(batch, name) for name in columns]
    if cells is None or None in cells:
        return list(rows_of_examples(records, columns))
    return [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]


def _column(batch: Any, name: str) -> list[object] | None:
    """Return the cell of each row; None if a row has several values."""
    place = batch.schema.get_field_index(name)
    if place < 0 or pa.types.is_null(batch.schema.types[place]):
        return [None] * batch.num_rows
    lists = batch.column(place)
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    if lengths.max(initial=0) > 1:
        return None
    plain = _plain(lists.flatten())
    if len(plain) == batch.num_rows:
        return plain
    cells: list[object] = [None] * batch.num_rows
    for row, value in zip(np.flatnonzero(lengths).tolist(), plain, strict=True):
        cells[row] = value
    return cells


def _plain(values: Any) -> list[object]:
    """Return `value_of` each value of an array."""
    if pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type):
        found = values.dictionary_encode()
        cells = [value_of(each) for each in found.dictionary.to_pylist()]
        return [cells[index] for index in found.indices.to_pylist()]
    numbers = values.to_numpy()
    plain: list[object] = numbers.tolist()
    if numbers.dtype.kind == "f":
        for place in np.flatnonzero(np.isnan(numbers)).tolist():
            plain[place] = None
    return plain


def rows_of_lists(
    inputs: Mapping[str, Sequence[Any]], columns: Sequence[str], needed: Collection[str] = ()
) -> Iterator[dict[str, object]]:
    """Yield the named columns of each row of a request; None where a row has no value.

    Args:
        inputs: by column, each row's value or list of values.
        columns: the columns to take; one that the request lacks is None.
        needed: as for `rows_of`.

    Raises:
        ValueError: the columns have different numbers of rows.
    """
    cells = [
        list(map(_whole_cell if name in needed else _cell_of_list, inputs[name]))
        for name in columns
        if name in inputs
    ]
    nothing = dict.fromkeys(columns)
    there = [name for name in columns if name in inputs]
    for row in zip(*cells, strict=True):
        yield nothing | dict(zip(there, row, strict=True))


def holds_infinity(row: Mapping[str, object]) -> bool:
    """Return True if a row has an infinite number. JSON has none, and null would mean a missing value."""
    return any(map(_is_infinite, row.values()))


def _is_infinite(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_is_infinite, value))
    return isinstance(value, float) and math.isinf(value)


def answers_of(outputs: Mapping[str, Array]) -> Iterator[object]:
    """Yield the answer to each row: that of the only output, or all by name."""
    yield from answers_of_lists({name: array.tolist() for name, array in outputs.items()})


def answers_of_lists(outputs: Mapping[str, Sequence[Any]]) -> Iterator[object]:
    """Yield the same as `answers_of`, from each row's value or list of values by output.

    Raises:
        ValueError: the outputs have different numbers of rows.
    """
    plain = {name: _texts(values) for name, values in outputs.items()}
    if len(plain) == 1:
        yield from next(iter(plain.values()))
        return
    for row in zip(*plain.values(), strict=True):
        yield dict(zip(plain, row, strict=True))


def _length(inputs: Mapping[str, Array]) -> int:
    return max((len(array) for array in inputs.values() if array.ndim), default=0)


def _cells(array: Array, is_needed: bool) -> list[object]:
    """Return one value for each row, which for a list column is a list."""
    is_list = array.ndim > 1 and array.shape[1:] != (1,)
    rows = array.reshape(len(array), -1).tolist() if array.ndim else [[array.item()]]
    if is_needed:
        return [list(map(_texts, row)) if is_list else value_of(row[0]) for row in rows]
    return [_cell(row, is_list=is_list) for row in rows]


def _cell_of_list(value: Any) -> object:
    """Return the cell of a row's value or list of values; a list of one counts as its value."""
    if not isinstance(value, list):
        return cell_of(value)
    return cell_of(value[0]) if len(value) == 1 else _cell(value, is_list=True)


def _whole_cell(value: Any) -> object:
    """Return the same of a column that has a value in every row: nothing of it is empty."""
    if not isinstance(value, list):
        return value_of(value)
    return value_of(value[0]) if len(value) == 1 else list(map(_texts, value))


def _of_feature(feature: Any) -> object:
    kind = feature.WhichOneof("kind") if feature is not None else None
    if kind is None:
        return None
    values = getattr(feature, kind).value
    if len(values) == 1:
        return value_of(values[0])
    return list(map(_texts, values)) or None  # nothing of it is padding


def _cell(values: Sequence[object], *, is_list: bool) -> object:
    """Return the value of a cell, or a list without the empty cells at its end, which are padding.

    Empty cells before a value stay: without them, the values behind would move to other places.
    """
    if not is_list:
        return next((_texts(value) for value in values if not _is_empty(value)), None)
    last = next((place for place in reversed(range(len(values))) if not _is_empty(values[place])), -1)
    return list(map(_texts, values[: last + 1]))


def cell_of(value: Any) -> object:
    """Return the logged form of a single value; None if it is empty, or bytes that are not text."""
    kind = type(value)
    if kind is float:
        return None if math.isnan(value) else value
    if kind is int:
        return None if value == _NO_INTEGER else value
    return None if _is_empty(value) else _texts(value)


def value_of(value: Any) -> object:
    """Return the logged form of a single value that is there; None for NaN, and bytes that are not text."""
    return None if type(value) is float and math.isnan(value) else _texts(value)


def _is_empty(value: object) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    return value in (b"", _NO_INTEGER)


def _texts(value: Any) -> Any:
    """Return bytes as text, and None for bytes that are not text, such as an image."""
    kind = type(value)
    if kind is float or kind is int:
        return value
    if kind is list:
        return [_texts(each) for each in value]
    if kind is not bytes:
        return value.item() if isinstance(value, np.generic) else value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
