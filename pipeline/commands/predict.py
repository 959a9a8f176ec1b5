"""The command `predict`: predicts the rows of files with a pushed version."""

import functools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.column_names import column_names
from slipway.components.ingest.column_types import Columns, ColumnType
from slipway.components.ingest.formats import FORMATS
from slipway.components.ingest.options import Options
from slipway.components.ingest.quarantine import to_record
from slipway.components.ingest.storage import GS, StoredFile, fetched, list_files
from slipway.components.ingest.typed_rows import example_rows
from slipway.components.predictor.input_columns import InputColumns, InputError
from slipway.components.pusher.manifest import Manifest
from slipway.components.pusher.version_store import UntrustedError, shelf_at
from slipway.components.request_log.request_log import LogSettings, RequestLog
from slipway.components.saved_model.class_names import classes_of, names_classes
from slipway.components.saved_model.signatures import SERVING_DEFAULT
from slipway.pipeline.commands.model_columns import (
    columns_with_types,
    needed_columns,
    schema_types,
    taken_columns,
)
from slipway.pipeline.commands.unfinished import unfinished
from slipway.pipeline.commands.versions import no_version
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.engine.signal_handlers import answered_by, raise_interrupt
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.terminal.sign_of_life import sign_of_life
from slipway.pipeline.wiring.beam_engine import beam_args as workload_beam_args
from slipway.pipeline.wiring.beam_engine import check_engine
from slipway.pipeline.wiring.beam_ports import without_ports
from slipway.pipeline.wiring.ingest_options import ingest_options
from slipway.pipeline.wiring.pushed_versions import serving_base, trusted_versions
from slipway.pipeline.wiring.request_log import log_settings

if TYPE_CHECKING:
    from slipway.components.predictor.predict_files import Counts, InputTask, Rows

_KINDS: Mapping[ColumnType | None, type] = {ColumnType.INT: int, ColumnType.FLOAT: float}
_SHOWN_DETAIL = 200  # characters of a row's rejected value
_SHOWN_PREDICTIONS = 3
_TABLES = ("csv", "jsonl", "parquet", "tfrecord")


class Summary(TypedDict):
    """The content of `summary.json`.

    Attributes:
        workload: its name.
        version: the model's.
        predicted: rows.
        not_finite: how many of them have no number for an answer.
        rejected: rows by reason.
        first_rejected: the first few of them.
        rejects: the files that hold all of them.
        files: those of the input.
        without_rows: those of them that hold no row.
    """

    workload: str
    version: int
    predicted: int
    not_finite: int
    rejected: Mapping[str, int]
    first_rejected: Sequence[Mapping[str, object]]
    rejects: list[str]
    files: list[str]
    without_rows: list[str]


@dataclass(frozen=True)
class Predicted:
    """The result of `predict`.

    Attributes:
        folder: holds the predictions, the rejects and `summary.json`.
        summary: what came of the rows.
        first: the first few predictions, each as the line of JSON that its file holds.
    """

    folder: Path
    summary: Summary
    first: tuple[str, ...] = ()

    def text(self) -> str:
        """A few lines."""
        rejected = sum(self.summary["rejected"].values())
        predicted = counted(self.summary["predicted"], "row")
        lines = [f"{predicted} predicted by version {self.summary['version']}."]
        lines += [f"  {_shortened(line)}" for line in self.first]
        if unsound := self.summary["not_finite"]:
            have = "has" if unsound == 1 else "have"
            lines.append(f"{unsound:,} of them {have} no finite prediction; null is written.")
        if rejected:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.summary["rejected"].items())
            lines.append(f"{counted(rejected, 'row')} rejected: {reasons}.")
            lines.append(_first_told(self.summary["first_rejected"][0], self.summary["rejects"]))
        if without := self.summary["without_rows"]:
            more = f" and {len(without) - 1:,} more" if len(without) > 1 else ""
            lines.append(f"{without[0]}{more}: no rows.")
        return "\n".join([*lines, str(self.folder)])


@dataclass(frozen=True)
class Reader:
    """Reads the rows of the input's files as examples; travels to Beam's workers.

    Attributes:
        columns: of the model, under their names in the files; each file must have them.
        schema: of the data; saves looking for the types of columns that the model does not take.
        needed: columns that no row may lack.
        pass_through: columns that the model does not take and the output has, where a file has them.
    """

    files: tuple[StoredFile, ...]
    options: Options
    columns: Columns
    schema: Columns
    needed: tuple[str, ...] = ()
    pass_through: tuple[str, ...] = ()

    def __call__(self, task: "InputTask") -> Iterator["Rows"]:
        """The rows of one file.

        Raises:
            InputError: it cannot be read, or lacks a column.
        """
        with raised_as(InputError, FileError):
            yield from self._rows(task)

    def _rows(self, task: "InputTask") -> Iterator["Rows"]:
        from slipway.components.predictor.predict_files import Rows

        with fetched(self.files[task.index]) as file:
            columns = dict(self.columns)
            if self.columns:
                names = column_names(file, self.options)
                takes = InputColumns(tuple(self.columns), self.needed, self.schema)
                if missing := takes.missing(names):
                    raise takes.error(file.name, missing)
                # As text, which no row is rejected for: an id may look otherwise than those of the training.
                passed = {name: ColumnType.TEXT for name in self.pass_through if name in names}
                columns = passed | columns
            for found in example_rows(file, self.options, columns, known=self.schema):
                rejects = [{"row": row, **to_record(task.name, reject)} for row, reject in found.rejects]
                yield Rows(found.records, found.rows, rejects)


def predict(
    config: WorkloadConfig,
    output: Path,
    *,
    source: str,
    to: Path | None,
    version: int | None,
    file_format: str | None,
    beam_args: list[str],
    verify_key: Path | None = None,
) -> Predicted:
    """Predicts the rows of files with a pushed version, after verifying it.

    Args:
        config: the workload; its `data` says how files of its own format are read.
        source: file, folder, glob or gs:// address.
        to: gets the predictions; must be new or empty. None: a new folder in OUTPUT/predictions/NAME.
        version: which; None: the newest.
        file_format: csv, jsonl, parquet or tfrecord; None: by the files' names.
        beam_args: options of the Beam pipeline, over the workload's.
        verify_key: the public key that the version must be signed with; None: the workload's, if it names
            one.

    Raises:
        UsageError: the Beam engine is not there, no version, one that the key does not trust, no file, one
            that cannot be read or lacks a column, or `to` holds something or cannot be made.
        ComponentError: the version is damaged, or the model refuses every row.
    """
    shelf = shelf_at(serving_base(config, output.absolute()), trusted_versions(config, verify_key))
    numbers = shelf.numbers()
    if not numbers:
        raise no_version(shelf.base, config.name, output)
    if version not in (None, *numbers):
        raise UsageError(
            f"{shelf.base} has no version {version}.", hint=command("versions", config.name, output=output)
        )
    engine = [*workload_beam_args(config.beam, config.cloud), *beam_args]
    check_engine(engine)
    number = version or numbers[-1]
    usual = ingest_options(config.data).format
    files = _files(source, file_format or usual)
    options = _options(config, file_format or _format_of(files[0].name, usual))
    manifest = shelf.manifest(number)
    with raised_as(UsageError, FileError, InputError):
        _check_columns(manifest, files[0], options, others=Path(shelf.base).parent)
    target = (to or output / "predictions" / config.name / _now()).absolute()
    doing = f"{config.name} version {number}: predicts {source}"
    # A SIGTERM, such as from a system that shuts down, leaves nothing half done either.
    with unfinished(target) as partial, answered_by(raise_interrupt):
        wrong_input = raised_as(UsageError, FileError, InputError, UntrustedError)
        with sign_of_life(doing), wrong_input, shelf.fetched(number) as model:
            reading = _Reading(files, options, config.transform.copied)
            log = _Logged(log_settings(config, output, manifest), number)
            counts = _predict(manifest, model, reading, partial, engine, log)
        summary: Summary = {
            "workload": config.name,
            "version": number,
            "predicted": counts.predicted,
            "not_finite": counts.not_finite,
            "rejected": counts.rejected,
            "first_rejected": counts.first,
            "rejects": sorted(path.name for path in partial.glob("rejects-*") if path.stat().st_size),
            "files": [file.name for file in files],
            "without_rows": counts.without_rows,
        }
        (partial / "summary.json").write_text(json.dumps(summary, indent=2), encoding="utf-8")
    return Predicted(target, summary, _first_predictions(target))


def _first_predictions(folder: Path) -> tuple[str, ...]:
    for path in sorted(folder.glob("predictions-*.jsonl")):
        with path.open(encoding="utf-8") as file:
            if lines := tuple(line.rstrip("\n") for line in islice(file, _SHOWN_PREDICTIONS)):
                return lines
    return ()


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_DETAIL else f"{text[:_SHOWN_DETAIL]}..."


@dataclass(frozen=True)
class _Reading:
    """The files of the input, how they are read, and which columns are passed through."""

    files: tuple[StoredFile, ...]
    options: Options
    pass_through: tuple[str, ...]


@dataclass(frozen=True)
class _Logged:
    """What of the rows is logged, None for nothing, and the version that answers."""

    settings: LogSettings | None
    version: int


def _predict(
    manifest: Manifest | None,
    model: Path,
    reading: _Reading,
    folder: Path,
    beam_args: list[str],
    log: _Logged,
) -> "Counts":
    from slipway.components.predictor.predict_files import Logging, predict_files
    from slipway.components.saved_model.reading import read_signatures
    from slipway.pipeline.engine.processes.listeners import bind_to_loopback

    bind_to_loopback()
    schema = schema_types(manifest)
    signatures = read_signatures(model)
    columns = columns_with_types(signatures, schema, reading.options.format)
    reader = Reader(
        reading.files, reading.options, columns, schema, needed_columns(manifest), reading.pass_through
    )
    classes = classes_of(manifest.papers) if manifest else ()
    if not names_classes(classes, signatures[SERVING_DEFAULT]):
        classes = ()
    return predict_files(
        [file.name for file in reading.files],
        model_folder=model,
        folder=folder,
        read=reader,
        beam_args=without_ports(beam_args),
        classes=classes,
        pass_through={name: _KINDS.get(schema.get(name), str) for name in reading.pass_through},
        logged=Logging(functools.partial(RequestLog, log.settings), log.version) if log.settings else None,
    )


def _check_columns(manifest: Manifest | None, file: StoredFile, options: Options, *, others: Path) -> None:
    """Rejects a table without columns that the model takes, before TensorFlow is imported.

    Later files, and those for a version without papers, are refused when they are read.

    Args:
        manifest: of the version; an older one may not name the columns.
        others: the folder beside the versions that holds those of other workloads.

    Raises:
        InputError: it lacks some.
        FileError: it cannot be read.
    """
    takes = InputColumns(taken_columns(manifest), needed_columns(manifest), schema_types(manifest))
    if options.format == "tfrecord" or not takes.taken:
        return
    with fetched(file) as there:
        names = column_names(there, options)
    if missing := takes.missing(names):
        is_other_table = 2 * len(missing) > len(takes.taken)  # else a column or two are misspelled
        other = _other_workload(names, file.name, others) if is_other_table else ""
        raise takes.error(file.name, missing, hint=other)


def _other_workload(names: Collection[str], source: str, folder: Path) -> str:
    """The command for another workload whose model needs only these columns; "" if there is none."""
    for base in sorted(folder.iterdir()) if folder.is_dir() else ():
        shelf = shelf_at(str(base))
        numbers = shelf.numbers()
        manifest = shelf.manifest(numbers[-1]) if numbers else None
        taken = taken_columns(manifest)
        if taken and set(taken) <= set(names):
            return command("predict", base.name, "--input", source, output=folder.parent)
    return ""


def _files(source: str, file_format: str) -> tuple[StoredFile, ...]:
    pattern = source
    if source.endswith("/") or (not source.startswith(GS) and Path(source).is_dir()):
        pattern = f"{source.rstrip('/')}/{FORMATS[file_format].in_folder[0]}"
    try:
        return tuple(list_files(pattern))
    except ComponentError as error:
        if pattern != source and file_format not in _TABLES:
            raise _no_table(
                file_format
            ) from error  # for a folder of images it is not the place that is wrong
        raise UsageError(error.message, hint="check --input") from error


def _format_of(name: str, otherwise: str) -> str:
    """The format that a file's name implies; otherwise the workload's `data.format`."""
    for each in _TABLES:
        if any(suffix in Path(name).suffixes for suffix in FORMATS[each].suffixes):
            return each
    return otherwise


def _options(config: WorkloadConfig, file_format: str) -> Options:
    if file_format not in _TABLES:
        raise _no_table(file_format)
    own = ingest_options(config.data)
    # The workload's delimiter and the like apply to files of its own format; `columns` to training.
    if file_format == own.format:
        return replace(own, columns=())
    # How people write numbers and dates is not a matter of the format.
    return Options(format=file_format, null_values=own.null_values, numbers=own.numbers, dates=own.dates)


def _no_table(file_format: str) -> UsageError:
    return UsageError(
        f"{file_format} files cannot be read by predict; it reads {', '.join(_TABLES)}.",
        hint="put the images into the column image of a Parquet file, one per row: docs/own-data.md",
    )


def _first_told(record: Mapping[str, object], rejects: Sequence[str]) -> str:
    """The first rejected row in words, and the files that hold all of them."""
    line = record.get("line")
    where = f"line {line}" if line is not None else f"row {record['row']} (from 0)"
    column = f", column {record['column']}" if record.get("column") else ""
    found = str(record.get("detail") or "").replace("\n", " ")
    shown = f" ({_shortened(found)})" if found else ""
    files = f"{rejects[0]}{f' and {len(rejects) - 1:,} more' if len(rejects) > 1 else ''}"
    what = f"{record['file']} {where}{column}: {record['reason']}{shown}"
    return f"The first: {what}. Each is in {files}."


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
