"""Reads TensorFlow Serving's own request logs: TFRecord files of PredictionLogs.

Unreadable content is counted by a reason in words, and never raises: another program writes the logs.
"""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.compression import Stream
from slipway.components.ingest.tfrecord import BrokenRecord, read_records
from slipway.components.request_log.logged_values import (
    answers_of_lists,
    cell_of,
    rows_of_lists,
    rows_of_many_examples,
    value_of,
)
from slipway.components.request_log.prediction_log_message import OTHER_KINDS, parse_prediction_log, shape_of
from slipway.components.saved_model.signatures import TRANSFORM_FEATURES

MOST_RECORD_BYTES = 64 * 2**20
_LAST_S = 253_402_300_799  # the end of the year 9999, the last that a datetime holds
_MOST_CELLS = 2**22
"""The most cells of a tensor, and of all columns of a request: a few bytes may stand for any number of equal
ones."""

# By number in tensorflow/core/framework/types.proto: the field of TensorProto, and the type of its content.
_STRING = 7
_TYPES: Mapping[int, tuple[str, Any]] = {
    1: ("float_val", np.float32),
    2: ("double_val", np.float64),
    3: ("int_val", np.int32),
    4: ("int_val", np.uint8),
    5: ("int_val", np.int16),
    6: ("int_val", np.int8),
    _STRING: ("string_val", np.object_),
    9: ("int64_val", np.int64),
    10: ("bool_val", np.bool_),
}

_OF_ONE = ((1,), (1, 1))
_ONE_CELL = b"\x12\x02\x08\x01" * 2
"""A serialized TensorShapeProto of one row and one column, as it is usually written."""
_NO_TYPE: tuple[str, Any] = ("", None)

DAMAGED = "damaged records"
REST = "files that are torn, unreadable or no TFRecord"
OTHER = "records that are no PredictionLog"
NO_ANSWER = "requests without an answer"
NO_PREDICTION = f"requests of {TRANSFORM_FEATURES}, which is no prediction"
NO_VERSION = "requests that name no version"
NO_TENSOR = "requests with a tensor that is not read"
NO_ROWS = "requests without an answer for each row"
NO_COLUMN = "requests or rows without any of the columns"
_EXAMPLES_AT_ONCE = 4096
_PIECE_BYTES = 2**20
_KINDS = {name: f"{name.removesuffix('_log').replace('_', ' ')} requests" for name in OTHER_KINDS}


class LoggedRequest(NamedTuple):
    """A request that was answered.

    Attributes:
        at_s: time of the log entry, in seconds since 1970; 0 if the log does not have it, or it is beyond the
            year 9999.
        rows: the values of the named columns.
        answers: one for each row.
    """

    version: int
    at_s: int
    rows: Sequence[Mapping[str, object]]
    answers: Sequence[object]


class _Buffered:
    """Reads a stream in large pieces, because the reader of a request makes two small reads."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._data, self._at = stream, b"", 0

    def read(self, size: int) -> bytes:
        """Return at most this many bytes; none at the end."""
        if self._at + size > len(self._data):
            self._data = self._data[self._at :] + self._stream.read(max(size, _PIECE_BYTES))
            self._at = 0
        found = self._data[self._at : self._at + size]
        self._at += len(found)
        return found


class _NoColumnError(Exception):
    """A request has none of the columns."""


class _WrongTensorError(Exception):
    """A tensor has a type or a shape that is not supported."""


def read_predictions(
    file: InputFile, columns: Sequence[str], left_out: Counter[str], *, needed: Collection[str] = ()
) -> Iterator[LoggedRequest]:
    """Yield the predict requests of a file.

    Args:
        file: compressed if its name has the corresponding ending.
        columns: the columns to take; one that a row lacks is None.
        left_out: counts what is not read, by reason.
        needed: those that have a value in every row: an empty text there is one.
    """
    waiting: list[_Examples] = []
    examples = 0
    for found in _requests(file, columns, left_out, needed):
        if isinstance(found, str):
            left_out[found] += 1
        elif isinstance(found, _Examples):
            waiting.append(found)
            examples += len(found.records)
            if examples >= _EXAMPLES_AT_ONCE:
                yield from _decoded(waiting, columns, left_out)
                waiting.clear()
                examples = 0
        else:
            yield from _with_columns(found, left_out)
    yield from _decoded(waiting, columns, left_out)


class _Examples(NamedTuple):
    """A request of serialized tf.Examples."""

    version: int
    at_s: int
    records: Sequence[bytes]
    answers: Sequence[object]


def _decoded(
    waiting: Sequence[_Examples], columns: Sequence[str], left_out: Counter[str]
) -> Iterator[LoggedRequest]:
    """Yield requests of tf.Examples, which are decoded together, in a quarter of the time."""
    rows = iter(rows_of_many_examples([record for each in waiting for record in each.records], columns))
    for each in waiting:
        own = list(itertools.islice(rows, len(each.records)))
        yield from _with_columns(LoggedRequest(each.version, each.at_s, own, each.answers), left_out)


def _with_columns(request: LoggedRequest, left_out: Counter[str]) -> Iterator[LoggedRequest]:
    """Yield the request with only those of its rows that have any of the columns, if there are any."""
    if len(request.rows) == 1 and next(iter(request.rows[0].values()), None) is not None:  # as most are
        yield request
        return
    kept = [place for place, row in enumerate(request.rows) if any(c is not None for c in row.values())]
    if lost := len(request.rows) - len(kept):
        left_out[NO_COLUMN] += lost
        rows, answers = [request.rows[place] for place in kept], [request.answers[place] for place in kept]
        request = request._replace(rows=rows, answers=answers)
    if kept:
        yield request


def _requests(
    file: InputFile, columns: Sequence[str], left_out: Counter[str], needed: Collection[str]
) -> Iterator[LoggedRequest | _Examples | str]:
    """Yield the requests of a file, or the reason why one is not read."""
    try:
        for item in read_records(_Buffered(Stream(file)), max_bytes=MOST_RECORD_BYTES):
            if isinstance(item, BrokenRecord):
                yield REST if item.is_end else DAMAGED
            else:
                yield _request(item[1], columns, needed)
    except FileError:  # compressed data that is cut short or damaged
        left_out[REST] += 1


def _request(
    record: bytes, columns: Sequence[str], needed: Collection[str]
) -> LoggedRequest | _Examples | str:
    """Return a request, or the reason why it is not read."""
    log = parse_prediction_log(record)
    kind = log.WhichOneof("kind") if log is not None else None
    if kind is None:
        return OTHER
    if kind != "predict_log":
        return _KINDS[kind]
    request, response, metadata = log.predict_log.request, log.predict_log.response, log.log_metadata
    if request.model_spec.signature_name == TRANSFORM_FEATURES:
        return NO_PREDICTION
    if not response.outputs:
        return NO_ANSWER
    specs = (response.model_spec, metadata.model_spec, request.model_spec)
    version = next((spec.version.value for spec in specs if spec.HasField("version")), 0)
    if version <= 0:
        return NO_VERSION
    at_s = metadata.timestamp_secs if 0 < metadata.timestamp_secs <= _LAST_S else 0
    try:
        examples = _examples(request.inputs, columns)
        most = max(_MOST_CELLS, len(record))  # at least as many as a record holds without repeating any
        rows = _rows(request.inputs, columns, needed, most) if examples is None else []
        answers = list(answers_of_lists({name: _nested(each) for name, each in response.outputs.items()}))
    except _WrongTensorError:
        return NO_TENSOR
    except _NoColumnError:
        return NO_COLUMN
    except ValueError:  # tensors with different numbers of rows
        return NO_ROWS
    if len(answers) != len(rows if examples is None else examples):
        return NO_ROWS
    if examples is not None:
        return _Examples(version, at_s, examples, answers)
    return LoggedRequest(version, at_s, rows, answers)


def _examples(inputs: Mapping[str, Any], columns: Sequence[str]) -> list[bytes] | None:
    """Return the serialized tf.Examples of a request; None if its inputs are columns."""
    if len(inputs) == 1:
        [(name, only)] = inputs.items()
        if only.dtype == _STRING and len(shape_of(only.tensor_shape) or ()) == 1 and name not in columns:
            examples = _nested(only)
            is_repeated = len(only.string_val) < len(examples)
            if is_repeated and (len(columns) + len(examples[-1])) * len(examples) > _MOST_CELLS:
                raise _WrongTensorError
            return examples
    return None


def _rows(
    inputs: Mapping[str, Any], columns: Sequence[str], needed: Collection[str], most_cells: int
) -> list[dict[str, object]]:
    if not any(name in inputs for name in columns):  # of another model; the number of rows does not matter
        raise _NoColumnError
    if (row := _one_row(inputs, columns, needed)) is not None:
        return [row]
    chosen = {name: inputs[name] for name in columns if name in inputs}
    if sum(abs(math.prod(shape_of(each.tensor_shape) or ())) for each in chosen.values()) > most_cells:
        raise _WrongTensorError
    there = {name: _nested(each) for name, each in chosen.items()}
    return list(rows_of_lists(there, columns, needed))


def _one_row(
    inputs: Mapping[str, Any], columns: Sequence[str], needed: Collection[str]
) -> dict[str, object] | None:
    """Return the row of a request with a single row, as most are; None for any other."""
    row: dict[str, object] = {}
    for name in columns:
        tensor = inputs.get(name)
        if tensor is None:
            row[name] = None
            continue
        field, _ = _TYPES.get(tensor.dtype, _NO_TYPE)
        given: Any = getattr(tensor, field, ())
        if len(given) != 1 or tensor.tensor_shape != _ONE_CELL:
            return None
        row[name] = value_of(given[0]) if name in needed else cell_of(given[0])
    return row


def _nested(tensor: Any) -> list[Any]:
    """Return the values of a tensor as nested lists, one per row."""
    field, kind = _TYPES.get(tensor.dtype, _NO_TYPE)
    shape = shape_of(tensor.tensor_shape)
    if not field or not shape:
        raise _WrongTensorError
    if shape in _OF_ONE and len(given := getattr(tensor, field)) == 1:  # as most are
        return [given[0]] if len(shape) == 1 else [[given[0]]]
    size = math.prod(shape)
    if min(shape) < 0 or max(size, *shape) > _MOST_CELLS:
        raise _WrongTensorError
    given = getattr(tensor, field)
    values = list(given) if len(given) == size else _values(tensor, field, kind, size)
    if len(shape) == 1:
        return values
    width = size // shape[0] if shape[0] else 0
    if width == 1:
        return [[value] for value in values]
    return [values[row * width : (row + 1) * width] for row in range(shape[0])]


def _values(tensor: Any, field: str, kind: Any, size: int) -> list[Any]:
    """Return the values as a flat list; if fewer are given than the tensor has, the last one is repeated."""
    values: list[Any]
    if tensor.tensor_content:
        if kind is np.object_ or len(tensor.tensor_content) != size * np.dtype(kind).itemsize:
            raise _WrongTensorError
        values = np.frombuffer(tensor.tensor_content, np.dtype(kind).newbyteorder("<")).tolist()
        return values
    values = list(getattr(tensor, field))
    if len(values) > size:
        raise _WrongTensorError
    if len(values) < size:
        nothing = b"" if kind is np.object_ else kind(0).item()
        values += [values[-1] if values else nothing] * (size - len(values))
    return values
