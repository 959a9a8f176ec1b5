"""Computes a pushed version's predictions for logged rows."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from slipway.components.data_profile.columns import Floats
from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.options import Options
from slipway.components.ingest.typed_rows import ExampleRows, example_rows
from slipway.components.large_imports import large_imports
from slipway.components.predictor.input_columns import InputColumns
from slipway.components.pusher.manifest import read_manifest
from slipway.components.pusher.version_store import UntrustedError, VersionStore
from slipway.components.saved_model.signatures import SERVE_RAW, SERVING_DEFAULT
from slipway.pipeline.commands.model_columns import (
    columns_with_types,
    needed_columns,
    schema_types,
    taken_columns,
)
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.terminal.sign_of_life import sign_of_life
from slipway.pipeline.watch.log_folder import JSON_LINES, Logs
from slipway.pipeline.watch.requests import names_of, no_requests

if TYPE_CHECKING:
    from slipway.components.saved_model.loading import LoadedModel


@dataclass(frozen=True)
class AnsweredFile:
    """A version's predictions for the rows of one file.

    Attributes:
        rows: ascending row numbers in the file, counted from 0.
        answers: the outputs of these rows, of shape [rows, outputs].
    """

    rows: npt.NDArray[np.int64]
    answers: Floats


def files_with_needed_columns(
    logs: Logs, store: VersionStore, numbers: Sequence[int], left_out_counts: Counter[str]
) -> Logs:
    """Return the log files that hold every column that the given versions take.

    Args:
        left_out_counts: counts by reason what is left out; files that lack a column are added here.

    Raises:
        UsageError: no file holds all of these columns.
    """
    manifests = [store.manifest(number) for number in numbers]
    taken = [
        InputColumns(taken_columns(each), needed_columns(each), schema_types(each)) for each in manifests
    ]
    missing: dict[str, None] = {}
    files = []
    for file in logs.files:
        names = names_of(file.path)
        if names is None:  # empty, or gone to make room
            continue
        lacking = [name for each in taken for name in each.missing(names)]
        missing |= dict.fromkeys(lacking)
        if lacking:
            left_out_counts["files without all columns that the versions take"] += 1
        else:
            files.append(file)
    if files:
        return Logs(logs.folder, files)
    if missing:
        raise UsageError(
            f"The requests in {logs.folder} lack columns that version {' or '.join(map(str, numbers))} "
            f"takes: {', '.join(missing)}.",
            hint="name them in request_log.columns too, then serve or predict more rows",
        )
    raise no_requests(logs.folder)


def answers_to(
    workload: str, store: VersionStore, number: int, logs: Logs, left_out_counts: Counter[str]
) -> list[AnsweredFile]:
    """Return a version's predictions for the rows of each file.

    A file that the log has meanwhile removed to make room has no rows in the result.

    Args:
        logs: files with all columns that the version takes.
        left_out_counts: counts the rows that have no answer, by reason.

    Raises:
        UsageError: a file cannot be read, the version is not trusted, or it does not answer every row with
            the same number of values.
        ComponentError: the version is damaged.
    """
    from slipway.components.saved_model.loading import LoadedModel

    found = []
    doing = f"{workload} version {number}: answers the rows in {logs.folder}"
    with (
        sign_of_life(doing),
        raised_as(UsageError, FileError, UntrustedError),
        store.fetched(number) as folder,
    ):
        model, schema = LoadedModel(folder), schema_types(read_manifest(folder))
        _check_signatures(model, number)
        for file in logs.files:
            options = Options(format="jsonl" if file.path.suffix == JSON_LINES else "parquet")
            columns = columns_with_types(model.signatures, schema, options.format)
            try:
                # Unlike `predict`, this accepts a file that grows while it is read: log files do.
                read = example_rows(InputFile(file.path.name, file.path), options, columns, known=schema)
                found.append(_answered(model, number, read, left_out_counts))
            except FileError:
                if file.path.exists():
                    raise
                found.append(AnsweredFile(np.zeros(0, np.int64), np.zeros((0, 1))))
    check_widths([each.answers for each in found if len(each.rows)], number)
    return found


def check_widths(parts: Sequence[Floats], number: int) -> None:
    """Check that a version answered with as many numbers in every part, as sequences of rows may not.

    Raises:
        UsageError: the answers of shape [rows, outputs] differ in their outputs.
    """
    if len(widths := {part.shape[1] for part in parts}) > 1:
        raise _uneven(number, f": {' or '.join(map(str, sorted(widths)))}")


def _answered(
    model: "LoadedModel", number: int, read: Iterable[ExampleRows], left_out_counts: Counter[str]
) -> AnsweredFile:
    with large_imports():
        from slipway.components.predictor.predict_files import REFUSED, predict_rows, rows_at_once

    rows, answers = [np.zeros(0, np.int64)], []
    for part in read:
        for _, reject in part.rejects:
            left_out_counts[f"rows for version {number}: {reject.reason}"] += 1
        step = rows_at_once(part.records)
        for start in range(0, len(part.records), step):
            batch = predict_rows(model, part.records[start : start + step])
            sound = [place for place, answer in enumerate(batch) if not isinstance(answer, ComponentError)]
            if refused := len(batch) - len(sound):
                left_out_counts[f"rows for version {number}: {REFUSED}"] += refused
            if sound:
                rows.append(part.rows[start : start + step][sound])
                answers.append(_as_numbers([batch[place] for place in sound], number))
    check_widths(answers, number)
    return AnsweredFile(np.concatenate(rows), np.concatenate(answers) if answers else np.zeros((0, 1)))


def _check_signatures(model: "LoadedModel", number: int) -> None:
    if SERVE_RAW not in model.signatures:
        raise UsageError(
            f"Version {number} has no signature serve_raw, so it cannot be given logged columns.",
            hint="push a version that has one",
        )
    default = model.signatures.get(SERVING_DEFAULT)
    if default is not None and len(default.outputs) != 1:
        raise UsageError(
            f"Version {number} has the outputs {', '.join(default.outputs)}, and only versions with one are "
            "compared."
        )


def _as_numbers(answers: Sequence[object], number: int) -> Floats:
    try:
        found = np.array(answers, np.float64)
    except (TypeError, ValueError) as error:
        raise _uneven(number) from error
    return found.reshape(len(found), -1)


def _uneven(number: int, widths: str = "") -> UsageError:
    return UsageError(
        f"Version {number} does not answer each row with the same number of numbers{widths}, so its answers "
        "cannot be compared.",
        hint="compare versions whose output has a fixed shape",
    )
