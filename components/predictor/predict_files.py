"""The Beam DoFn that predicts the rows of a file with a SavedModel, in batches, and writes lines of JSON.

<folder>/predictions-00000-of-00002.jsonl   {"row": 0, "prediction": [0.83]}, in the order of the file; with
                                            "class": "yes" if the classes have names (of several
                                            outputs {"tip": "yes"}), and
                                            "columns": {"id": "p7"} if columns are passed through
<folder>/rejects-00000-of-00002.jsonl       {"row": 7, "reason": "not a number", ...}

TFX's BulkInferrer is not used because it only loads Keras 2 models.
"""

import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import orjson

from slipway.components.errors import ComponentError, SlipwayError
from slipway.components.predictor.input_columns import InputError
from slipway.components.saved_model.class_names import Classes, class_names, names_of_rows
from slipway.components.saved_model.loading import LoadedModel, WrongInputError
from slipway.components.saved_model.signatures import SERVING_DEFAULT

BATCH_ROWS = 2048
"""Rows per model call: enough to make the overhead of a call small, few enough to stay in caches."""
BATCH_BYTES = 1 << 20
"""Bytes of examples per model call: what a model computes from large rows, such as images, is many times as
large."""

REFUSED = "the model refuses it"
_FIRST_REJECTS = 3
_INT_BITS = 64
_MAKE_ROOM = "make room there, or choose a folder with --to"
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_KINDS = _PREDICTIONS, _REJECTS = "predictions", "rejects"


_log = logging.getLogger(__name__)


class Log(Protocol):
    """Logs answers, like `slipway.components.request_log.request_log.RequestLog`."""

    @property
    def left_out_counts(self) -> Mapping[str, int]:
        """The number of rows that the log lacks, by reason."""

    def write_examples(self, version: int, records: Sequence[bytes], answers: Sequence[object]) -> None:
        """Sample the answered rows and write them; raise OSError if they cannot be written."""

    def close(self) -> None:
        """Close the log."""


@dataclass(frozen=True)
class Logging:
    """The logging of answers; must be picklable for the workers.

    Attributes:
        begin: opens the log of one worker.
    """

    begin: Callable[[], Log]
    version: int


@dataclass(frozen=True)
class Rows:
    """Rows of a file that were read together.

    Attributes:
        records: serialized tf.Examples.
        rows: the number of each in its file, from 0.
        rejects: a plain record for each row that could not be read, with its `row`.
    """

    records: list[bytes]
    rows: npt.NDArray[np.int64]
    rejects: list[dict[str, Any]]


@dataclass(frozen=True)
class InputTask:
    """One file of the input."""

    index: int
    name: str
    of: int

    def path(self, folder: str, kind: str) -> Path:
        """Return the output path for `predictions` or `rejects`."""
        return Path(folder, f"{kind}-{self.index:05d}-of-{self.of:05d}.jsonl")


@dataclass
class Counts:
    """Counts of the rows of one or more files, by outcome.

    Attributes:
        rejected: rows without a prediction, by reason.
        not_finite: rows whose prediction contains an infinite value or NaN.
    """

    predicted: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    first: list[dict[str, Any]] = field(default_factory=list)
    not_finite: int = 0
    without_rows: list[str] = field(default_factory=list)

    def reject(self, record: dict[str, Any]) -> None:
        """Count a rejected row."""
        self.rejected[record["reason"]] = self.rejected.get(record["reason"], 0) + 1
        if len(self.first) < _FIRST_REJECTS:
            self.first.append(record)

    def add(self, other: "Counts") -> None:
        """Add the counts of another file."""
        self.predicted += other.predicted
        self.not_finite += other.not_finite
        for reason, count in other.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + count
        self.first = (self.first + other.first)[:_FIRST_REJECTS]
        self.without_rows += other.without_rows


class PredictFile(beam.DoFn):
    """Predicts the rows of each file.

    Args:
        model_folder: of a verified SavedModel.
        read: yields the rows of a file; must be picklable for the workers.
        classes: names of the classes that the answers refer to, see `classes_of_answers`; None: none.
        pass_through: columns of the rows to write beside each answer, see `columns_of`.
        logged: the logging of the answers; None: they are not logged.
    """

    def __init__(
        self,
        model_folder: str,
        folder: str,
        read: Callable[[InputTask], Iterable[Rows]],
        classes: Classes | None = None,
        pass_through: Mapping[str, type] | None = None,
        *,
        logged: Logging | None = None,
    ) -> None:
        self._logged = logged
        self._requests: Log | None = None
        self._pass_through = dict(pass_through or {})
        self._model_folder, self._folder = model_folder, folder
        self._read, self._classes = read, dict(classes or {})
        self._model: LoadedModel | None = None

    def setup(self) -> None:
        """Open the log, once per worker."""
        self._requests = self._logged.begin() if self._logged else None

    def teardown(self) -> None:
        """Close the log."""
        if self._requests is not None:
            self._requests.close()
            for why, rows in self._requests.left_out_counts.items():
                _log.warning("The log of requests lacks %s (%d).", why, rows)

    def process(self, task: InputTask) -> Iterator[None]:
        """Write the file's predictions and rejects, and a report beside them for `predict_files`."""
        report: Mapping[str, object]
        try:
            if self._model is None:  # once per worker, and here, so that its error is reported
                self._model = LoadedModel(Path(self._model_folder))
            report = asdict(self._predict(task, self._model))
        except SlipwayError as error:
            # Passed as a value: Beam would turn an exception into the text of a traceback.
            is_input = isinstance(error, InputError)
            report = {"error": error.message, "hint": error.hint, "is_input": is_input}
        except OSError as error:  # a full disk
            for kind in _KINDS:  # partial files are useless, and the report needs room, too
                task.path(self._folder, kind).unlink(missing_ok=True)
            words = f"{error.filename or self._folder} cannot be written: {error.strerror or error}"
            report = {"error": words, "hint": _MAKE_ROOM, "is_input": False}
        path = _report_path(task, self._folder)
        try:
            path.write_text(json.dumps(report), encoding="utf-8")
        except OSError:  # not even room for this; `predict_files` tells that it is missing
            with suppress(OSError):
                path.unlink()
        yield from ()

    def _predict(self, task: InputTask, model: LoadedModel) -> Counts:
        counts, seen = Counts(), 0
        with (
            task.path(self._folder, _PREDICTIONS).open("wb") as out,
            task.path(self._folder, _REJECTS).open("wb") as rejects,
        ):
            for rows in self._read(task):
                refused = list(rows.rejects)
                step = rows_at_once(rows.records)
                for start in range(0, len(rows.records), step):
                    numbers = rows.rows[start : start + step].tolist()
                    batch = rows.records[start : start + step]
                    answers = predict_rows(model, batch)
                    seen += len(answers)
                    is_none = not counts.predicted and all(isinstance(a, WrongInputError) for a in answers)
                    if is_none and seen >= BATCH_ROWS:  # each refused row costs calls
                        raise _all_refused(task.name, seen, answers[0].message)
                    self._log_answers(batch, answers)
                    names = iter(self._names(answers))
                    for row, record, answer in zip(numbers, batch, answers, strict=True):
                        if isinstance(answer, WrongInputError):
                            told = {"row": row, "reason": REFUSED, "detail": answer.message}
                            refused.append({"file": task.name, **told})
                        else:
                            counts.predicted += 1
                            counts.not_finite += not _is_finite(answer)
                            line = {"row": row, "prediction": answer}
                            if self._pass_through:
                                line["columns"] = columns_of(record, self._pass_through)
                            if self._classes:
                                line["class"] = next(names)
                            out.write(orjson.dumps(line) + b"\n")
                for told in sorted(refused, key=lambda each: each["row"]):
                    counts.reject(told)
                    text = json.dumps(told, ensure_ascii=False)
                    # A lone surrogate, as for a byte in a file's name, is escaped, as JSON has it.
                    rejects.write(text.encode(errors="backslashreplace") + b"\n")
        if not counts.predicted and not counts.rejected:
            counts.without_rows.append(task.name)
        return counts

    def _log_answers(self, records: list[bytes], answers: list[Any]) -> None:
        if self._logged is None or self._requests is None:
            return
        sound = [row for row, answer in enumerate(answers) if not isinstance(answer, WrongInputError)]
        try:
            self._requests.write_examples(
                self._logged.version, [records[row] for row in sound], [answers[row] for row in sound]
            )
        except OSError as error:  # the predictions go on without the log
            _log.warning("Requests are no longer logged: %s", error)
            self._requests.close()
            self._requests = None

    def _names(self, answers: list[Any]) -> list[Any]:
        """Return the class of each answer that is not an error; of several outputs those by output."""
        sound = [answer for answer in answers if not isinstance(answer, WrongInputError)]
        if not self._classes or not sound:
            return []
        is_one = not isinstance(sound[0], dict)
        by_output = {
            output: class_names(
                np.array([each if is_one else each[output] for each in sound], dtype=np.float64), classes
            )
            for output, classes in self._classes.items()
        }
        return names_of_rows(by_output, has_one_output=is_one)


def predict_files(
    names: list[str],
    *,
    model_folder: Path,
    folder: Path,
    read: Callable[[InputTask], Iterable[Rows]],
    beam_args: list[str],
    classes: Classes | None = None,
    pass_through: Mapping[str, type] | None = None,
    logged: Logging | None = None,
) -> Counts:
    """Predict the rows of files, each in the order of its rows, in memory that does not grow with them.

    Args:
        model_folder: of a verified SavedModel.
        folder: gets the files that the module describes; must exist.
        classes: names of the classes that the answers refer to, see `classes_of_answers`; None: none.
        pass_through: columns of the rows to write beside each answer, see `columns_of`.
        logged: the logging of the answers; None: they are not logged.

    Raises:
        InputError: `read` cannot read a file, or it is not a table that the model takes.
        ComponentError: the model refuses every row, or the first 2,048 rows of a file; or the folder cannot
            be written.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    tasks = [InputTask(index, name, len(names)) for index, name in enumerate(names)]
    with beam.Pipeline(options=PipelineOptions(beam_args)) as pipeline:
        _ = (
            pipeline
            | "Files" >> beam.Create(tasks, reshuffle=len(tasks) > 1)
            | "Predict"
            >> beam.ParDo(
                PredictFile(str(model_folder), str(folder), read, classes, pass_through, logged=logged)
            )
        )
    of_files = []
    for task in tasks:
        path = _report_path(task, str(folder))
        try:
            report = json.loads(path.read_text(encoding="utf-8"))
            path.unlink()
        except OSError as error:
            raise ComponentError(f"{folder} cannot be written", hint=_MAKE_ROOM) from error
        if "error" in report:
            kind = InputError if report["is_input"] else ComponentError
            raise kind(report["error"], hint=report["hint"])
        of_files.append(Counts(**report))
    return _total(of_files)


def _total(of_files: Sequence[Counts]) -> Counts:
    """Return the counts of all files together.

    Raises:
        ComponentError: there are rows, and the model refuses each of them.
    """
    total = Counts()
    for each in of_files:
        total.add(each)
    if not total.predicted and total.rejected.keys() == {REFUSED}:
        first = next(each for each in of_files if each.rejected)
        raise _all_refused(first.first[0]["file"], first.rejected[REFUSED], first.first[0]["detail"])
    return total


def columns_of(record: bytes, kinds: Mapping[str, type]) -> dict[str, object]:
    """Return some columns of a serialized tf.Example as plain values: None for no value, a list for several.

    Args:
        kinds: by column, the type that text is converted to: int, float or str. Text that is not such a
            number stays text, because the model takes none of these columns and an id may have any form. So
            does text that the conversion would change: 007, 1_000, or more digits than a float holds.
    """
    from tensorflow.core.example.example_pb2 import Example

    features = Example.FromString(record).features.feature
    found: dict[str, object] = {}
    for name, kind in kinds.items():
        feature = features.get(name)
        given = feature.WhichOneof("kind") if feature is not None else None
        values = (
            [_number_or_text(_decoded(each), kind) for each in getattr(feature, given).value] if given else []
        )
        found[name] = values if len(values) > 1 else next(iter(values), None)
    return found


def _number_or_text(value: Any, kind: type) -> Any:
    if not isinstance(value, str) or kind is str:
        return value
    if not _NUMBER.fullmatch(value):
        return value
    try:
        number = kind(value)
    except ValueError:
        return value
    if isinstance(number, int):  # readers of JSON have 64 bits
        return number if str(number) == value and number.bit_length() < _INT_BITS else value
    return number if math.isfinite(number) and Decimal(repr(number)) == Decimal(value) else value


def rows_at_once(records: Sequence[bytes]) -> int:
    """Return how many of these examples to give a model in one call."""
    return max(1, min(BATCH_ROWS, BATCH_BYTES * len(records) // max(sum(map(len, records)), 1)))


def predict_rows(model: LoadedModel, records: list[bytes]) -> list[Any]:
    """Return the model's prediction for each record, as plain values; a WrongInputError for a refused record.

    A batch with a record that the model refuses is halved until the record is alone.
    """
    [argument] = model.signatures[SERVING_DEFAULT].inputs
    array = np.empty(len(records), dtype=object)
    array[:] = records
    try:
        return _by_row(model.call(SERVING_DEFAULT, {argument: array}))
    except WrongInputError as error:
        if len(records) == 1:
            return [error]
        half = len(records) // 2
        first = predict_rows(model, records[:half])
        return [*first, *predict_rows(model, records[half:])]


def _by_row(outputs: Mapping[str, npt.NDArray[Any]]) -> list[Any]:
    """Return one value for each row: that of the only output, or all by name; bytes as text."""
    plain = {name: _plain(array) for name, array in outputs.items()}
    if len(plain) == 1:
        return next(iter(plain.values()))
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def _plain(array: Any) -> list[Any]:
    values: list[Any] = array.tolist()
    return _decoded(values) if array.dtype.kind in "OS" else values


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(each) for each in value]
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _is_finite(answer: Any) -> bool:
    """Return True if JSON can represent every number of an answer."""
    if isinstance(answer, float):
        return math.isfinite(answer)
    if isinstance(answer, dict):
        return all(map(_is_finite, answer.values()))
    return all(map(_is_finite, answer)) if isinstance(answer, list) else True


def _report_path(task: InputTask, folder: str) -> Path:
    return task.path(folder, _PREDICTIONS).with_suffix(".report")


def _all_refused(name: str, rows: int, why: str) -> ComponentError:
    refused = "its only row" if rows == 1 else f"each of the first {rows} rows"
    return ComponentError(
        f"{name}: the model refuses {refused}: {why}",
        hint="are these the columns that the model was trained on? MODEL_CARD.md lists them",
    )
