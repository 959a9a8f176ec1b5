"""The Beam executor of Ingest: runs a task for each group of files, then checks the combined result."""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.components.example_gen import utils
from tfx.components.util import examples_utils
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import proto_utils
from tfx.utils.io_utils import copy_dir

from slipway.components.beam_args import most_workers
from slipway.components.beam_engine_workers import no_result, runs_elsewhere
from slipway.components.counted_words import counted, first_of
from slipway.components.errors import ComponentError, SlipwayError
from slipway.components.failure_files import left_folder
from slipway.components.ingest.blocks import check_columns
from slipway.components.ingest.column_types import Columns, ColumnType, merge
from slipway.components.ingest.convert import Report, convert
from slipway.components.ingest.digest import combined
from slipway.components.ingest.file_parts import divided
from slipway.components.ingest.header_names import EMPTY_END, EMPTY_END_NOTE, INDEX, INDEX_NOTE
from slipway.components.ingest.local_ingest import infer_columns, run_tasks, worker_count
from slipway.components.ingest.options import Options
from slipway.components.ingest.planning import Task, final_names, plan_tasks
from slipway.components.ingest.quarantine import BadRowsError, NoRowsError, check_tally
from slipway.components.ingest.storage import StoredFile, list_files
from slipway.components.ingest.tfrecord_examples import WRITE_FEWER
from slipway.components.progress import report as tell

OPTIONS_KEY = "ingest"
SCHEMA_FILE_KEY = "schema_file"
QUARANTINE_KEY = "quarantine"

_UNFINISHED = ".unfinished"  # below the examples' folder, while Beam writes
_REPORT = ".report"
_TYPES = {
    schema_pb2.INT: ColumnType.INT,
    schema_pb2.FLOAT: ColumnType.FLOAT,
    schema_pb2.BYTES: ColumnType.TEXT,
}
# Errors in the data are passed as values: Beam would turn an exception into the text of a traceback.
_Failure = dict[str, str]


class Executor(BaseBeamExecutor):
    """Converts the files of `input_base` to examples."""

    def Do(  # noqa: N802  (TFX's name)
        self,
        input_dict: Mapping[str, Sequence[Any]],
        output_dict: Mapping[str, Sequence[Any]],
        exec_properties: Mapping[str, Any],
    ) -> None:
        """Write the artifacts `examples` and `quarantine`.

        Raises:
            ComponentError: files cannot be read, or too many rows do not parse.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        examples = artifact_utils.get_single_instance(output_dict[standard_component_specs.EXAMPLES_KEY])
        quarantine = artifact_utils.get_single_instance(output_dict[QUARANTINE_KEY])
        inputs = _proto(exec_properties, standard_component_specs.INPUT_CONFIG_KEY, example_gen_pb2.Input())
        outputs = _proto(
            exec_properties, standard_component_specs.OUTPUT_CONFIG_KEY, example_gen_pb2.Output()
        )
        options = _with_splits(
            Options.from_json(json.loads(exec_properties[OPTIONS_KEY])), outputs.split_config
        )
        names = utils.generate_output_split_names(inputs, outputs)
        examples.split_names = artifact_utils.encode_split_names(names)
        splits = {name: artifact_utils.get_split_uri([examples], name) for name in names}
        sources = {
            split: divided(files, options)
            for split, files in _sources(
                exec_properties[standard_component_specs.INPUT_BASE_KEY], inputs, outputs
            ).items()
        }
        plan = partial(plan_tasks, sources, min_shards=options.min_shards)
        known = options.known(_schema_types(exec_properties.get(SCHEMA_FILE_KEY)))
        folders = [*splits.values(), quarantine.uri]
        _make_anew(folders)
        unfinished = f"{examples.uri}/{_UNFINISHED}"
        if self._is_for_beam(folders):
            report = self._run_with_beam(plan, options, known, unfinished, splits, quarantine.uri)
        else:
            tasks = plan(splits, quarantine=quarantine.uri)
            report = run_tasks(
                tasks,
                options,
                known,
                workers=worker_count(tasks, at_most=most_workers(self._beam_pipeline_args or ())),
                clear=lambda: _make_anew(folders),
            )
        _finish(report, splits, quarantine, options)
        with suppress(OSError):  # where another attempt of Beam's is still writing, or there is none
            fileio.rmtree(unfinished)
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        examples_utils.set_file_format(examples, "tfrecords_gzip")

    def _is_for_beam(self, folders: Sequence[str]) -> bool:
        """Return True unless all is on one machine, where Beam's own parallelism costs more than it gains."""
        return any("://" in folder for folder in folders) or runs_elsewhere(self._beam_pipeline_args)

    def _run_with_beam(
        self,
        plan: Callable[..., Sequence[Task]],
        options: Options,
        known: Columns,
        unfinished: str,
        splits: Iterable[str],
        quarantine: str,
    ) -> Report:
        # Beam may do a task more than once, even after another attempt at it has ended.
        drafts = {name: f"{unfinished}/splits/{name}" for name in splits}
        rejected = f"{unfinished}/rejected"
        _make_anew([*drafts.values(), rejected])
        tasks = plan(drafts, quarantine=rejected)
        with self._make_beam_pipeline() as pipeline:
            dealt = pipeline | "Tasks" >> beam.Create(tasks) | "Deal" >> beam.Reshuffle()
            columns = (
                dealt
                | "Infer" >> beam.ParDo(_Infer(options, known))
                | "Merge" >> beam.CombineGlobally(_merged)
            )
            _ = dealt | "Convert" >> beam.ParDo(_Convert(options, known), beam.pvalue.AsSingleton(columns))
        return _collect(tasks, rejected, quarantine)


class _Infer(beam.DoFn):
    """Infers the columns and types of a task's files; an error is yielded as a value."""

    def __init__(self, options: Options, known: Columns) -> None:
        self._options = options
        self._known = dict(known)

    def process(self, task: Task) -> Iterator[Any]:
        try:
            columns = infer_columns(task, options=self._options, known=self._known)
        except SlipwayError as error:
            yield _failure(error)
        else:
            yield (task.index, {name: int(kind) for name, kind in columns.items()})


class _Convert(beam.DoFn):
    """Converts a task's files, and writes the report or the error next to its quarantine file.

    Each attempt writes files of its own, and its report when they are complete.
    """

    def __init__(self, options: Options, known: Columns) -> None:
        self._options = options
        self._known = tuple(known)

    def process(self, task: Task, found: Any) -> None:
        document: Mapping[str, object]
        task = task.attempted(secrets.token_hex(8))
        try:
            if "error" in found:
                raise ComponentError(found["error"], hint=found["hint"])
            columns = {name: ColumnType(kind) for name, kind in found["columns"].items()}
            check_columns(columns, self._options.limits, of="the source")

            def progress(rows: int, done_bytes: int) -> None:
                tell(counted(rows, "row"), done=task.skipped_bytes + done_bytes, total=task.total_bytes)

            document = convert(
                task,
                self._options,
                columns,
                known=self._known,
                open_output=_open_output,
                progress=progress,
            ).to_json()
        except SlipwayError as error:
            document = _failure(error)
        with _open_output(f"{task.quarantine}{_REPORT}") as file:
            file.write(json.dumps({**document, "rejected": task.quarantine}).encode())


def _make_anew(folders: Sequence[str]) -> None:
    for folder in folders:
        if fileio.exists(folder):
            fileio.rmtree(folder)
        fileio.makedirs(folder)


def _merged(found: Iterable[Any]) -> dict[str, Any]:
    """Merge the columns of all tasks in their order, or return a failure; also accepts its own results."""
    parts: dict[int, Any] = {}
    for part in found:
        if isinstance(part, dict):
            if "error" in part:
                return part
            parts |= part.get("parts", {})
        else:
            parts[part[0]] = part[1]
    columns: Columns = {}
    for index in sorted(parts):
        columns = merge(columns, {name: ColumnType(kind) for name, kind in parts[index].items()})
    return {"columns": {name: int(kind) for name, kind in columns.items()}, "parts": parts}


def _failure(error: SlipwayError) -> _Failure:
    return {"error": error.message, "hint": error.hint}


def _open_output(path: str) -> Any:
    return FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)


def _proto(exec_properties: Mapping[str, object], key: str, message: Any) -> Any:
    proto_utils.json_to_proto(exec_properties[key], message)
    return message


def _with_splits(options: Options, config: Any) -> Options:
    split = {each.name: each.hash_buckets for each in config.splits}
    by = dict(options.split_by)
    if config.partition_feature_name:
        by["key"] = config.partition_feature_name
    return replace(options, split=split, split_by=by)


def _sources(base: str, inputs: Any, outputs: Any) -> dict[str | None, Any]:
    """Return the files by split if the input patterns are the splits, else all under None."""
    found = {split.name: list_files(f"{base.rstrip('/')}/{split.pattern}") for split in inputs.splits}
    if not outputs.split_config.splits:
        _check_apart(found)
        return dict(found)
    if len(found) != 1:
        raise ComponentError(
            f"input_config names {len(found)} splits and output_config splits them again",
            hint="leave output_config out, or name one input split",
        )
    return {None: next(iter(found.values()))}


def _check_apart(found: Mapping[str, Sequence[StoredFile]]) -> None:
    """Check that no file is in two splits: a model would be evaluated on rows that it has learned."""
    split_of: dict[str, str] = {}
    for split, files in found.items():
        for file in files:
            if (other := split_of.setdefault(file.name, split)) != split:
                raise ComponentError(
                    f"{file.name} matches the patterns of two splits, {other} and {split}",
                    hint="name patterns in data.split_by.files that have no file in common",
                )


def _schema_types(path: str | None) -> dict[str, ColumnType]:
    if not path:
        return {}
    with fileio.open(path, "r") as file:
        schema = text_format.Parse(file.read(), schema_pb2.Schema())
    return {feature.name: _TYPES[feature.type] for feature in schema.feature if feature.type in _TYPES}


def _collect(tasks: Sequence[Task], rejected: str, quarantine: str) -> Report:
    """Merge the reports of one complete attempt at each task, and put its rejected rows into the quarantine.

    Args:
        rejected: the folder of the reports and rejected rows of all attempts.

    Raises:
        ComponentError: no attempt at a task succeeded.
    """
    reports = sorted(name for name in fileio.listdir(rejected) if name.endswith(_REPORT))
    report = Report()
    renames: dict[str, str] = {}
    for task in tasks:
        prefix = PurePath(task.quarantine).name
        document = _best(f"{rejected}/{name}" for name in reports if name.startswith(f"{prefix}-"))
        if document is None:
            raise no_result(rejected)
        if "error" in document:
            raise ComponentError(document["error"], hint=document["hint"])
        report.add(Report.from_json(document))
        renames[document["rejected"]] = f"{quarantine}/{prefix}"
    FileSystems.rename(list(renames), list(renames.values()))
    return report


def _best(paths: Iterable[str]) -> dict[str, Any] | None:
    """Return the first report of a success, or else of a failure; what is being written is none."""
    failure = None
    for path in paths:
        with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            text = file.read()
        try:
            document: dict[str, Any] = json.loads(text)
        except ValueError:
            continue
        if "error" not in document:
            return document
        failure = document
    return failure


def _finish(report: Report, splits: Mapping[str, str], quarantine: Any, options: Options) -> None:
    """Write the summary, check the counts of rows, and give the shards their final names."""
    check_columns(report.features, options.limits, of="the source", remedy=WRITE_FEWER)
    tally = report.tally
    notes = tally.notes.sentences()
    notes |= {INDEX: INDEX_NOTE} if tally.has_index else {}
    notes |= {EMPTY_END: EMPTY_END_NOTE} if tally.has_empty_end else {}
    summary = {
        **tally.to_json(),
        "bad_share": tally.bad_share,
        "notes": notes,
        "digest": combined(report.digests),
        "files": [
            {"name": each.name, "size_bytes": each.size_bytes, "crc32c": f"{each.crc32c:08x}"}
            for each in report.digests
        ],
    }
    if report.units:
        summary["units"] = {name: unit for name, (unit, _) in report.units.items()}
    with _open_output(f"{quarantine.uri}/summary.json") as file:
        file.write((json.dumps(summary, indent=2, ensure_ascii=False) + "\n").encode())
    try:
        check_tally(tally, max_bad_share=options.max_bad_share, file_format=options.format)
    except NoRowsError as error:
        files = first_of([each.name for each in report.digests], 1)
        raise ComponentError(f"{files}: {error.message}", hint=error.hint) from error
    except BadRowsError as error:
        raise _left_behind(error, quarantine.uri) from error
    renames = final_names(report.shards, splits)
    FileSystems.rename([old for old, _ in renames], [new for _, new in renames])
    counts = {
        "rows_in": tally.rows_in,
        "rows_out": sum(tally.rows_out.values()),
        "rows_rejected": tally.rejected,
        "rows_unlabelled": tally.unlabelled,
    }
    for name, count in counts.items():
        quarantine.set_int_custom_property(name, count)
    quarantine.set_string_custom_property("digest", summary["digest"])
    left_out = f", {tally.unlabelled:,} left out without a label" if tally.unlabelled else ""
    read_otherwise = f", {counted(len(notes), 'column')} read differently than written" if notes else ""
    tell(f"{counted(tally.rows_in, 'row')}, {tally.rejected:,} in quarantine{left_out}{read_otherwise}")


def _left_behind(error: BadRowsError, quarantine: str) -> BadRowsError:
    """Copy the rejected rows for the user, since TFX removes a failed node's outputs; name the copy."""
    folder = left_folder()
    if folder is None:
        return error
    folder.parent.mkdir(parents=True, exist_ok=True)
    copy_dir(quarantine, str(folder))
    return BadRowsError(f"{error.message}; all of them: {folder}/", hint=error.hint)
