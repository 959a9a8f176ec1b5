"""The command `predict`: predicts the rows of files with a pushed version."""

import contextlib
import functools
import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from slipway.components.counted_words import agreeing, counted, first_of
from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.column_names import boolean_columns, column_names
from slipway.components.ingest.column_types import Columns, ColumnType
from slipway.components.ingest.csv_heads import other_separator
from slipway.components.ingest.formats import FORMATS, WITH_COLUMNS
from slipway.components.ingest.options import Options
from slipway.components.ingest.quarantine import to_record
from slipway.components.ingest.storage import StoredFile, fetched, list_files
from slipway.components.ingest.typed_rows import example_rows
from slipway.components.large_imports import large_imports
from slipway.components.predictor.input_columns import InputColumns, InputError
from slipway.components.pusher.manifest import Manifest, read_manifest
from slipway.components.pusher.version_store import UntrustedError, version_store_at
from slipway.components.request_log.kept_back import KeptBack, kept_back
from slipway.components.request_log.request_log import LogSettings, RequestLog
from slipway.components.saved_model.class_names import classes_of, classes_of_answers
from slipway.components.saved_model.signatures import SERVING_DEFAULT
from slipway.components.store_address import is_elsewhere
from slipway.pipeline.commands.model_columns import (
    columns_with_types,
    date_columns,
    needed_columns,
    schema_types,
    taken_columns,
)
from slipway.pipeline.commands.unfinished import unfinished
from slipway.pipeline.commands.versions import pushed_version
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.train import TransformConfig
from slipway.pipeline.engine.signal_handlers import Interruptions, raise_interrupt, signals_handled_by
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.exit_codes import DONE, FAILED
from slipway.pipeline.runs.run_id import new_run_id
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

_log = logging.getLogger(__name__)

_KINDS: Mapping[ColumnType | None, type] = {ColumnType.INT: int, ColumnType.FLOAT: float}
_SHOWN_DETAIL = 200  # characters of a row's rejected value
_SHOWN_PREDICTIONS = 3
_IN_JSON = ("true", "false")
_TABLES = (*WITH_COLUMNS, "tfrecord")


class Summary(TypedDict):
    """The content of `summary.json`.

    Attributes:
        not_finite: the number of predicted rows whose prediction is not finite.
        rejects: the names of the files that hold all rejected rows.
        without_rows: the names of input files without rows.
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
        first: the first few predictions, each as the line of JSON in its file.
    """

    folder: Path
    summary: Summary
    first: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """FAILED if every row was rejected."""
        return FAILED if self.summary["rejected"] and not self.summary["predicted"] else DONE

    def text(self) -> str:
        """Return a few lines about the result."""
        rejected = sum(self.summary["rejected"].values())
        predicted = counted(self.summary["predicted"], "row")
        lines = [f"{predicted} predicted by version {self.summary['version']}."]
        lines += [f"  {_shortened(line)}" for line in self.first]
        if unsound := self.summary["not_finite"]:
            lines.append(
                f"{unsound:,} of them {agreeing(unsound, 'have')} no finite prediction; null is written."
            )
        if rejected:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.summary["rejected"].items())
            lines.append(f"{counted(rejected, 'row')} rejected: {reasons}.")
            lines.append(_first_told(self.summary["first_rejected"][0], self.summary["rejects"]))
        if without := self.summary["without_rows"]:
            lines.append(f"{first_of(without, 1)}: no rows.")
        return "\n".join([*lines, str(self.folder)])


@dataclass(frozen=True)
class Reader:
    """Reads the rows of the input files as examples; is pickled and sent to Beam's workers.

    Attributes:
        columns: the model's columns, by their names in the files; every file must have them.
        schema: the columns of the data; saves inferring the types of columns that the model does not take.
        needed: columns that no row may lack.
        pass_through: columns that the model does not take, but that are copied to the output if a file has
            them.
        units: what the durations of columns counted in training.
        truths: how the training data of columns of texts spelled true and false, as far as it is known.
        dates: columns of which all texts were ISO dates in training, as far as it is known.
    """

    files: tuple[StoredFile, ...]
    options: Options
    columns: Columns
    schema: Columns
    needed: tuple[str, ...] = ()
    pass_through: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    truths: Mapping[str, Collection[str]] = field(default_factory=dict)
    dates: tuple[str, ...] = ()

    def __call__(self, task: "InputTask") -> Iterator["Rows"]:
        """Yield the rows of one file.

        Raises:
            InputError: the file cannot be read, or lacks a column.
        """
        with raised_as(InputError, FileError):
            yield from self._rows(task)

    def _rows(self, task: "InputTask") -> Iterator["Rows"]:
        from slipway.components.predictor.predict_files import Rows

        with fetched(self.files[task.index]) as file:
            columns = dict(self.columns)
            if self.columns:
                names = column_names(file, self.options, wanted=self.columns)
                takes = InputColumns(tuple(self.columns), self.needed, self.schema)
                if missing := takes.missing(names):
                    raise takes.error(file.name, missing, hint=_other_separator(names, missing, self.options))
                self._check_booleans(file)
                # As text, so that no row is rejected for an id that looks different from those in training.
                # In JSON Lines, later objects may have keys that are not among the names.
                may_have_more = self.options.format == "jsonl"
                there = [name for name in self.pass_through if may_have_more or name in names]
                passed = dict.fromkeys(there, ColumnType.TEXT)
                columns = passed | columns
            taken = {name: unit for name, unit in self.units.items() if name in self.columns}
            dates = [name for name in self.dates if name in self.columns]
            for found in example_rows(
                file, self.options, columns, known=self.schema, units=taken, dates=dates
            ):
                rejects = [{"row": row, **to_record(task.name, reject)} for row, reject in found.rejects]
                yield Rows(found.records, found.rows, rejects)

    def _check_booleans(self, file: InputFile) -> None:
        """Refuse true and false for texts unless the training had them as they are read: it may have had yes.

        Raises:
            InputError: a column of texts holds them, in a file of another format than in training.
        """
        if not self.options.trained_as:
            return
        texts = [name for name, kind in self.columns.items() if kind == ColumnType.TEXT]
        held = boolean_columns(file, self.options) if texts else frozenset()
        found = [name for name in texts if name in held and not self._is_read_as_trained(name)]
        if found:
            # JSON has them as words of its own, which a training on it has taken for these texts.
            usual = _IN_JSON if self.options.trained_as == "jsonl" else ("True", "False")
            likely = " and ".join(map(repr, self.truths.get(found[0], usual)))
            raise InputError(
                f"{file.name}: column {found[0]!r} holds true and false, and the model was trained on texts",
                hint=f"write the texts that it had in training, such as {likely}",
            )

    def _is_read_as_trained(self, column: str) -> bool:
        truths = self.truths.get(column, ())
        return bool(self.options.format == "jsonl" and truths and set(truths) <= set(_IN_JSON))


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
    """Predict the rows of files with a pushed version, after verifying it.

    Args:
        config: the workload; its `data` section says how to read files of the workload's own format.
        source: a file, folder, glob, or an address in an object store.
        to: the folder for the predictions; must be new or empty. None: a new folder in
            OUTPUT/predictions/NAME.
        version: the version's number; None: the newest.
        file_format: one of `_TABLES`; None: taken from the file names.
        beam_args: options of the Beam pipeline, which override the workload's.
        verify_key: the public key whose private key must have signed the version; None: the workload's key,
            if it names one.

    Raises:
        UsageError: the Beam runner is not installed; there is no such version, or it is not trusted; there
            is no file, or one cannot be read or lacks a column; or `to` is not empty or cannot be created.
        ComponentError: the version is damaged, or the model refuses every row.
    """
    store = version_store_at(serving_base(config, output.absolute()), trusted_versions(config, verify_key))
    number = pushed_version(store, version, config, output)
    engine = [*workload_beam_args(config.beam, config.cloud), *beam_args]
    check_engine(engine)
    usual = ingest_options(config.data).format
    files = _files(source, file_format or usual)
    options = _options(config, file_format or _format_of(files[0].name, usual))
    with raised_as(UsageError, FileError, InputError):
        _check_columns(store.manifest(number), files[0], options, others=output.absolute() / "serving")
    # An id as of a run: of two that begin in the same second, each has a folder of its own.
    target = (to or output / "predictions" / config.name / new_run_id()).absolute()
    doing = f"{config.name} version {number}: predicts {source}"
    with contextlib.ExitStack() as at_end:
        # SIGTERM, for instance from a system that shuts down, must not leave anything half done either.
        with unfinished(target, is_own=to is None) as partial, signals_handled_by(raise_interrupt):
            wrong_input = raised_as(UsageError, FileError, InputError, UntrustedError)
            with sign_of_life(doing), wrong_input, store.fetched(number) as model:
                manifest = read_manifest(model)  # of what was verified, not of what lies in the base by now
                copied = _copied(config.transform, schema_types(manifest))
                training = _texts_in_training(output.absolute(), manifest, number)
                reading = _Reading(files, options, copied, training)
                rows = _kept_back(log_settings(config, output, manifest), at_end)
                log = _Logged(rows.settings if rows else None, number)
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
        # Logged once the predictions are in place: else the rows are predicted, and so logged, again.
        if rows:
            _log_rows(rows)
    return Predicted(target, summary, _first_predictions(target))


def _kept_back(settings: LogSettings | None, at_end: contextlib.ExitStack) -> KeptBack | None:
    """Return where the rows are kept until they may be logged; None if they are not logged."""
    try:
        return at_end.enter_context(kept_back(settings)) if settings else None
    except OSError as error:
        _warn_unlogged(error)
        return None


def _log_rows(rows: KeptBack) -> None:
    """Add the rows to the log, whatever signals come meanwhile; the predictions are complete without it."""
    try:
        with signals_handled_by(Interruptions().note):
            rows.log()
    except OSError as error:
        _warn_unlogged(error)


def _warn_unlogged(error: OSError) -> None:
    _log.warning("Requests are not logged, or not all of them: %s", error)


def _copied(wanted: TransformConfig, schema: Columns) -> tuple[str, ...]:
    """Return the columns to copy to the predictions.

    A weight is one of them if the data has a column of its name; one that `preprocessing_fn` computes is in
    no file.
    """
    weight = (wanted.weight,) if wanted.weight in schema else ()
    return tuple(dict.fromkeys((*wanted.copied, *weight)))


def _texts_in_training(output: Path, manifest: Manifest | None, version: int) -> "_Training":
    """Return what is known of the texts that a version was trained on.

    Of data whose statistics are not on this machine, or cannot be read, no more is known than the manifest
    says.
    """
    # Imported here because it needs protobuf, and what predict refuses at once does not.
    from slipway.pipeline.watch.training_data import training_statistics

    run_id = manifest.provenance.get("run", "") if manifest else ""
    dates = date_columns(manifest)
    try:
        training = training_statistics(output, run_id, version)
    except (UsageError, OSError):  # runs of another user, whom versions need not belong to
        return _Training(dates=dates)
    truths = {
        name: spelled
        for name, each in training.features.items()
        if (spelled := tuple(text for text in each.counts if text.casefold() in _IN_JSON))
    }
    # Of versions that were pushed before manifests named them.
    dates = dates or tuple(name for name, each in training.features.items() if each.holds_dates)
    return _Training(truths, dates)


def _first_predictions(folder: Path) -> tuple[str, ...]:
    for path in sorted(folder.glob("predictions-*.jsonl")):
        with path.open(encoding="utf-8") as file:
            if lines := tuple(line.rstrip("\n") for line in islice(file, _SHOWN_PREDICTIONS)):
                return lines
    return ()


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_DETAIL else f"{text[:_SHOWN_DETAIL]}..."


@dataclass(frozen=True)
class _Training:
    """By column how the training data spelled true and false, most frequent first; and a reader's `dates`."""

    truths: Mapping[str, Collection[str]] = field(default_factory=dict)
    dates: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Reading:
    """The input files, the options to read them with, columns to pass through, and what is known of texts."""

    files: tuple[StoredFile, ...]
    options: Options
    pass_through: tuple[str, ...]
    training: _Training


@dataclass(frozen=True)
class _Logged:
    """The settings for logging the rows (None: nothing is logged), and the version that predicts."""

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
    with large_imports():
        from slipway.components.predictor.predict_files import Logging, predict_files
    from slipway.components.saved_model.reading import read_signatures
    from slipway.pipeline.engine.processes.grpc_on_loopback import bind_to_loopback

    bind_to_loopback()
    schema = schema_types(manifest)
    signatures = read_signatures(model)
    columns = columns_with_types(signatures, schema, reading.options.format)
    reader = Reader(
        reading.files,
        reading.options,
        columns,
        schema,
        needed_columns(manifest),
        reading.pass_through,
        dict(manifest.provenance.get("data", {}).get("units", {})) if manifest else {},
        reading.training.truths,
        reading.training.dates,
    )
    classes = classes_of(manifest.provenance) if manifest else {}
    return predict_files(
        [file.name for file in reading.files],
        model_folder=model,
        folder=folder,
        read=reader,
        beam_args=without_ports(beam_args),
        classes=classes_of_answers(classes, signatures[SERVING_DEFAULT]),
        pass_through={name: _KINDS.get(schema.get(name), str) for name in reading.pass_through},
        logged=Logging(functools.partial(RequestLog, log.settings), log.version) if log.settings else None,
    )


def _check_columns(manifest: Manifest | None, file: StoredFile, options: Options, *, others: Path) -> None:
    """Reject a table that lacks columns of the model, before TensorFlow is imported.

    Only the first file is checked here. Later files, and those for a version without a manifest, are checked
    when they are read.

    Args:
        manifest: the version's manifest; an older one may not name the columns.
        others: the output folder's versions of all workloads, to look for one that fits the table.

    Raises:
        InputError: the table lacks columns.
        FileError: the file cannot be read.
    """
    takes = InputColumns(taken_columns(manifest), needed_columns(manifest), schema_types(manifest))
    if options.format == "tfrecord" or not takes.taken:
        return
    with fetched(file) as there:
        names = column_names(there, options, wanted=takes.taken)
    if missing := takes.missing(names):
        is_other_table = 2 * len(missing) > len(takes.taken)  # else a column or two are misspelled
        other = _other_workload(names, file.name, others) if is_other_table else ""
        raise takes.error(file.name, missing, hint=_other_separator(names, missing, options) or other)


def _other_separator(names: Sequence[str], missing: Collection[str], options: Options) -> str:
    """Return the hint on a CSV whose columns are separated otherwise than the workload's; "" for others."""
    separator = other_separator(names) if options.format == "csv" else None
    # The name of a lone column may hold a separator, too, such as a space.
    if separator is None or not {name.strip('" ') for name in names[0].split(separator)} & set(missing):
        return ""
    return f"its columns seem to be separated by {separator!r}: write them with {options.delimiter!r} between"


def _other_workload(names: Collection[str], source: str, folder: Path) -> str:
    """Return the command for another workload whose model takes only these columns; "" if there is none."""
    for base in sorted(folder.iterdir()) if folder.is_dir() else ():
        store = version_store_at(str(base))
        numbers = store.numbers()
        manifest = store.manifest(numbers[-1]) if numbers else None
        taken = taken_columns(manifest)
        if taken and set(taken) <= set(names):
            return command("predict", base.name, "--input", source, output=folder.parent)
    return ""


def _files(source: str, file_format: str) -> tuple[StoredFile, ...]:
    pattern = source
    if source.endswith("/") or (not is_elsewhere(source) and Path(source).is_dir()):
        if file_format not in FORMATS:
            raise _no_table(file_format)
        pattern = f"{source.rstrip('/')}/{FORMATS[file_format].in_store}"
    try:
        return tuple(list_files(pattern))
    except ComponentError as error:
        if pattern != source and file_format not in _TABLES:
            raise _no_table(
                file_format
            ) from error  # the address of a folder of images is right, its format is not
        # The remedy is that of a run, which has the place in data.source.
        hint = error.hint.replace("data.source", "--input") or "check --input"
        raise UsageError(error.message, hint=hint) from error


def _format_of(name: str, otherwise: str) -> str:
    """Return the format that a file's name implies; otherwise the workload's `data.format`."""
    for each in _TABLES:
        if any(suffix in Path(name).suffixes for suffix in FORMATS[each].suffixes):
            return each
    return otherwise


def _options(config: WorkloadConfig, file_format: str) -> Options:
    if file_format not in _TABLES:
        raise _no_table(file_format)
    own = ingest_options(config.data)
    # The delimiter and the like apply to files of the workload's format, `columns` only to training data.
    if file_format == own.format:
        return replace(own, columns=())
    # How numbers and dates are written does not depend on the file format, nor does how large a row may be.
    # A value is missing here if it was in training, so the rule is that of the workload's format.
    return Options(
        format=file_format,
        null_values=own.null_values,
        trained_as=own.format,
        types=own.types,
        numbers=own.numbers,
        dates=own.dates,
        limits=own.limits,
    )


def _no_table(file_format: str) -> UsageError:
    return UsageError(
        f"{file_format} files cannot be read by predict; it reads {', '.join(_TABLES)}.",
        hint="put the images into the column image of a Parquet file, one per row: docs/own-data.md"
        if file_format in FORMATS
        else "name the format of your files, as --format csv",
    )


def _first_told(record: Mapping[str, object], rejects: Sequence[str]) -> str:
    """Describe the first rejected row, and name the files that hold all rejected rows."""
    line = record.get("line")
    where = f"line {line}" if line is not None else f"row {record['row']} (from 0)"
    column = f", column {record['column']}" if record.get("column") else ""
    found = str(record.get("detail") or "").replace("\n", " ")
    shown = f" ({_shortened(found)})" if found else ""
    what = f"{record['file']} {where}{column}: {record['reason']}{shown}"
    return f"The first: {what}. Each is in {first_of(rejects, 1)}."
