"""The request of a local run, checked as far as possible before anything starts."""

import ast
import itertools
import operator
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypedDict, Unpack, cast

from slipway.components.errors import ComponentError
from slipway.components.escaped_text import escaped
from slipway.components.ingest.csv_heads import check_heads
from slipway.components.ingest.query.tables import SQL, QueryError
from slipway.components.ingest.source import SourceError, Sources, resolve_sources
from slipway.components.ingest.spans import at_span, by_span, span_kind, span_number
from slipway.components.nearest import nearest
from slipway.components.parsed_source import parsed_source
from slipway.components.project import PROJECT_ROOT
from slipway.components.trainer.interpreter import find_interpreter
from slipway.pipeline.config import (
    DataConfig,
    WorkloadChoice,
    WorkloadConfig,
    read_assignments,
    read_parameters,
)
from slipway.pipeline.config.importable import read_module
from slipway.pipeline.errors import ConfigError, DataSourceError, UsageError, raised_as
from slipway.pipeline.runs.record import OVERRIDES, WHY, RunRecord
from slipway.pipeline.runs.run_target import (
    ModuleRun,
    NodeLimits,
    Order,
    Origin,
    RecordedRequest,
    Source,
    Target,
    WorkloadRun,
)
from slipway.pipeline.terminal.invocation import DEFAULT_WORKLOAD
from slipway.pipeline.wiring.beam_engine import beam_args, check_engine
from slipway.pipeline.wiring.gate_settings import judges_age
from slipway.pipeline.wiring.hub_commits import at_commits
from slipway.pipeline.wiring.import_folders import import_folders
from slipway.pipeline.wiring.ingest_options import ALL, ingest_options, source_patterns
from slipway.pipeline.wiring.keras_choice import other_keras
from slipway.pipeline.wiring.metadata_store import server_of
from slipway.pipeline.wiring.own_commands import check_program, check_webhook
from slipway.pipeline.wiring.pushed_versions import signing_key

TRAINING_NODES = frozenset({"Tuner", "Trainer"})
_FROM_THE_TRAINING_ON = ("Tuner", "Trainer", "Evaluator", "ServingCheck", "ModelGate", "Pusher")


class Options(TypedDict, total=False):
    """Options for running a pipeline; see `Request`."""

    start: str | None
    end: str | None
    no_cache: bool
    jobs: int | None
    fail_fast: bool


def _whole(value: object) -> int | None:
    """Return a whole number of any library as Python's own; None if it is no such number."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


@dataclass(frozen=True, kw_only=True)
class Request(RecordedRequest):
    """A request to run a pipeline; see `RecordedRequest`.

    Attributes:
        target: what is compiled, and how it was made.
        ir: a pipeline that was compiled elsewhere, serialized; kept in its run's folder.

    Raises:
        UsageError: `jobs` is not a whole number, or is less than 1.
    """

    target: Target
    ir: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        jobs = None if isinstance(self.jobs, bool) else _whole(self.jobs)
        # With fewer, no node would ever be started, and the run be complete without one.
        if self.jobs is not None and (jobs is None or jobs < 1):
            raise UsageError(
                f"jobs is {self.jobs!r}; it must be a whole number of nodes, at least 1.",
                hint="None: as many as cores and memory allow",
            )
        object.__setattr__(self, "jobs", jobs)  # a whole number of NumPy's is none that JSON can hold

    @property
    def recorded(self) -> RecordedRequest:
        """The part that the run's record keeps."""
        return RecordedRequest(**{each.name: getattr(self, each.name) for each in fields(RecordedRequest)})

    @property
    def is_workload(self) -> bool:
        """Whether the target is a workload of this project, not a user's own pipeline."""
        return isinstance(self.target, WorkloadRun)

    @property
    def workload_run(self) -> WorkloadRun:
        """The target of a workload; valid only if `is_workload`."""
        return cast(WorkloadRun, self.target)

    @property
    def code_roots(self) -> tuple[Path, ...]:
        """The folders that user code is imported from, the project's first: all that is not installed."""
        folders = dict.fromkeys((PROJECT_ROOT, *map(Path, self.target.import_from), *import_folders()))
        return tuple(folder for folder in folders if folder.is_dir())

    @property
    def keras(self) -> dict[str, str]:
        """The variables by which a user's own pipeline takes another Keras than the default."""
        return other_keras(os.environ, is_ours=self.is_workload)

    def order(self, *, run_id: str, folder: Path) -> Order:
        """Return the order for the fork server.

        Args:
            run_id: the run's id in the metadata store.
            folder: the run's folder, which holds the IR of a pipeline that was handed over.
        """
        return Order(
            target=self.target,
            run_id=run_id,
            folder=folder,
            parameters=self.parameters,
            beam_args=self.beam_args,
        )

    def store_file(self, compiled: str) -> Path | None:
        """Return the SQLite file of the metadata store; None if the store is on a server.

        Args:
            compiled: the store that the compiled pipeline names, see `Graph.store`; a user's pipeline may
                have its own. A workload's store may have changed since, because the environment can name
                it.
        """
        if self.is_workload:
            is_here = server_of(self._config.metadata, os.environ) is None
            return self.output / "metadata.db" if is_here else None
        return Path(compiled) if compiled else None

    @property
    def beam_runner(self) -> str:
        """The workload's Beam runner."""
        return self._config.beam.runner

    @property
    def trains(self) -> bool:
        """Whether it trains if no result is reused, as far as the request shows."""
        return self.start is None and self.end in (None, *_FROM_THE_TRAINING_ON)

    @property
    def checks_serving(self) -> bool:
        """Whether the whole pipeline runs and queries the exported model, as far as the request shows."""
        is_whole = self.is_workload and self.start is None and self.end is None
        return is_whole and self._config.evaluate.serving is not None

    def check_engine(self) -> None:
        """Reject a Beam runner that could not run the steps.

        Raises:
            ConfigError: as `beam_engine.check_engine`.
        """
        config = self._config if self.is_workload else None
        own = beam_args(config.beam, config.cloud) if config else []
        check_engine([*own, *self.beam_args])

    def check_interpreter(self) -> None:
        """Reject a `train.interpreter` that is not there, before the run rather than at the Trainer.

        Raises:
            ConfigError: as `interpreter.find_interpreter`.
        """
        name = self._config.train.interpreter if self.is_workload else None
        if name is None:
            return
        with raised_as(ConfigError, ComponentError):
            find_interpreter(name)

    def check_destination(self) -> None:
        """Reject a destination that takes no model, a key that cannot sign, and a hook that is not there.

        A destination with the versions of another workload counts as one of these.

        Checked before the run rather than after the training, and not if the run ends before the push.

        Raises:
            ConfigError: names the directory, and what is wrong there; or `push.hook` is no program.
            UsageError: the signing key cannot be read or is not a key, or this machine has no working
                credentials for the endpoint.
        """
        if not self.is_workload or self.end not in (None, "Pusher"):
            return
        from slipway.components.pusher.destination import find_unwritable

        push = self._config.push
        if push.endpoint is not None:
            _check_credentials()
        signing_key(self._config)
        check_program("push.hook", push.hook, none="push.hook=[]")
        destination = push.destination
        workload = self._config.name
        if destination is not None and (problem := find_unwritable(destination, workload=workload)):
            raise ConfigError(
                f"push.destination = {destination}: no version can be written there; {problem}",
                hint="--set push.destination=DIRECTORY that can be written; null: serving/NAME in the output",
            )

    def check_notify(self) -> None:
        """Reject a `notify.command` or `notify.webhook_env` that is not there: nobody would be told.

        Raises:
            ConfigError: as `own_commands.check_program` and `check_webhook`.
        """
        if not self.is_workload or (notify := self._config.notify) is None:
            return
        check_program("notify.command", notify.command, none="notify=null")
        if notify.webhook_env is not None:
            check_webhook(notify.webhook_env)

    @property
    def _config(self) -> WorkloadConfig:
        return self.workload_run.settings

    @classmethod
    def of(cls, record: RunRecord) -> Self:
        """Return the original request of a run, for the folder that holds its record now.

        Raises:
            UsageError: the record does not say what was run.
        """
        recorded = record.target.with_output(record.output)
        if recorded.target is None:
            raise UsageError(
                f"The record of run {record.run_id} does not say what was run.",
                hint="start a new run; finished nodes stay cached",
            )
        return cls(**{each.name: getattr(recorded, each.name) for each in fields(RecordedRequest)})


def _check_credentials() -> None:
    from slipway.components.google_credentials import find_credentials

    with raised_as(UsageError, ComponentError):
        find_credentials("push.endpoint")


def requested(
    workload: Path,
    *,
    output: Path,
    sets: Sequence[str] = (),
    profile: str | None = None,
    pipeline: str | None = None,
    beam_args: Sequence[str] = (),
    overrides: Mapping[str, str] | None = None,
    **options: Unpack[Options],
) -> Request:
    """Return the request of a command line: a workload, or with `pipeline` any TFX pipeline.

    Raises:
        UsageError: the workload or pipeline does not exist or is invalid, or the options do not fit it.
    """
    output = output.absolute()
    if pipeline is None:
        chosen = WorkloadChoice(workload, read_assignments(sets), profile)
        return workload_request(chosen, output=output, beam_args=beam_args, overrides=overrides, **options)
    if Path(workload) not in (DEFAULT_WORKLOAD, Path()):
        raise UsageError(
            f"{workload} is a workload, and --pipeline {pipeline} is run instead of one.",
            hint="name one of them",
        )
    if profile is not None:
        raise UsageError("--profile belongs to a workload file; --pipeline has none.")
    for name in overrides or {}:
        raise UsageError(f"{OVERRIDES[name]} belongs to the gates of a workload; --pipeline has its own.")
    parameters = read_parameters(sets)
    return pipeline_request(pipeline, parameters=parameters, output=output, beam_args=beam_args, **options)


def workload_request(
    chosen: WorkloadChoice,
    *,
    output: Path,
    beam_args: Sequence[str],
    overrides: Mapping[str, str] | None = None,
    **options: Unpack[Options],
) -> Request:
    """Return a request to run a workload of this project, after every check that needs no run.

    Args:
        overrides: see `Request`; None for none.

    Raises:
        ConfigError: the workload file, the schema or the user's functions are missing or wrong.
        DataSourceError: the data is.
        UsageError: an override has no reason, or only the placeholder that messages show.
    """
    overrides = _with_reasons(overrides or {})
    config = chosen.config()
    try:
        source, columns = _found(config, output)
    except (SourceError, QueryError) as error:
        hint = _how_made(chosen.file.parent, config) or error.hint
        raise DataSourceError(error.message, hint=hint) from error
    if columns:
        _check_columns(config, columns)
    target = WorkloadRun(
        config=config.model_dump_json(by_alias=True),
        source=Source(source.directory, dict(source.patterns)),
        output=output,
        overrides=overrides,
        # A verdict on the age of data is valid for one day only.
        today=datetime.now(UTC).date().isoformat() if judges_age(config) else "",
    )
    return Request(
        workload=config.name,
        target=target,
        output=output,
        nodes={node_id: NodeLimits(**limit.model_dump()) for node_id, limit in config.nodes.items()},
        beam_args=tuple(beam_args),
        origin=Origin(str(chosen.file), tuple(each.text for each in chosen.sets), chosen.profile),
        overrides=overrides,
        **options,
    )


def _found(config: WorkloadConfig, output: Path) -> tuple[Sources, tuple[str, ...]]:
    """Return the source to read, and the names of its columns; no names if only the run will know them."""
    data = config.data
    if data.format == SQL:
        from slipway.pipeline.wiring.query_rows import query_rows  # imports DuckDB and Arrow

        rows = query_rows(data, workload=config.name, root=PROJECT_ROOT, output=output)
        return Sources(str(rows.folder), {ALL: rows.pattern}, rows.files), rows.columns
    sources = at_commits(source_patterns(data), workload=config.name)
    source = resolve_sources(sources, root=PROJECT_ROOT, file_format=data.format)
    options = ingest_options(data)
    return source, check_heads(_files_taken(data, source), label=data.label, options=options)


def _how_made(folder: Path, config: WorkloadConfig) -> str:
    """Return the commands that make missing data with the workload's own script; empty if they do not apply.

    Args:
        folder: the workload's folder. The script is its make_data.py, whose docstring lists the commands,
            indented.
    """
    script = folder / "make_data.py"
    sources = [PROJECT_ROOT / each for each in source_patterns(config.data).values()]
    if not script.is_file() or any(each.exists() or each.parent != folder for each in sources):
        return ""
    words = ast.get_docstring(parsed_source(script.read_text(encoding="utf-8"))) or ""
    lines = [line.partition("  #")[0].strip() for line in words.split("\n") if line.startswith("    ")]
    return f"{' && '.join(lines)}   # see {os.path.relpath(script, PROJECT_ROOT)}" if lines else ""


def _files_taken(data: DataConfig, source: Sources) -> Sequence[Path]:
    """Return the files of the named span, or else of the latest; all files if a split has no spans."""
    named = source_patterns(data)
    if data.span is None:
        if any(span_kind([pattern]) is None for pattern in named.values()):
            return source.files
        found = by_span(source.files, named.values())
        return found[max(found)] if found else ()
    number = span_number(data.span)
    patterns = {split: at_span(pattern, number) for split, pattern in named.items()}
    return resolve_sources(patterns, root=PROJECT_ROOT, file_format=data.format).files


def again(record: RunRecord, *, jobs: int | None) -> Request:
    """Return the request of an earlier run, with its current workload file.

    The current file is used because a failed run is repeated after something was corrected.

    Raises:
        ConfigError: the workload file is invalid now.
        UsageError: the record does not say what was run.
    """
    request = replace(Request.of(record), jobs=jobs)
    origin = request.origin
    if origin is None:
        return request
    now = workload_request(
        WorkloadChoice(Path(origin.path), read_assignments(origin.sets), origin.profile),
        output=request.output,
        beam_args=request.beam_args,
        overrides=request.overrides,
    )
    # The workload may have another name now, under which its pushes are locked and recorded.
    return replace(request, workload=now.workload, target=now.target, nodes=now.nodes)


def _with_reasons(overrides: Mapping[str, str]) -> dict[str, str]:
    for name, reason in overrides.items():
        if not reason.strip():
            raise UsageError(
                f"{OVERRIDES[name]} needs a reason: it is kept with the run and with what it pushes.",
                hint=f'for example {OVERRIDES[name]} "checked with the data\'s owner on Monday"',
            )
        if reason.strip().lower() == WHY:
            raise UsageError(
                f"{OVERRIDES[name]} {shlex.quote(reason.strip())} is a placeholder; give your own reason.",
                hint=f'write it, as {OVERRIDES[name]} "checked with the data\'s owner on Monday"',
            )
    return {name: reason.strip() for name, reason in overrides.items()}


def _check_columns(config: WorkloadConfig, columns: Sequence[str]) -> None:
    """Reject any column name in the workload that the files do not have."""
    data, by = config.data, config.data.split_by
    named = {
        "data.columns": data.columns,
        "data.types": tuple(data.types),
        "data.numbers": tuple(data.numbers),
        "data.dates": tuple(data.dates),
        "data.split_by.key": (by.key,) if by and by.key else (),
        "data.split_by.time": (by.time,) if by and by.time else (),
        "statistics.slices": tuple(itertools.chain.from_iterable(config.statistics.slices)),
        "statistics.weight": (config.statistics.weight,) if config.statistics.weight else (),
        "evaluate.slices": tuple(_sliced_raw(config)),
        "transform.group": (config.transform.group,) if config.transform.group else (),
        "data_gate.freshness.column": (fresh.column,) if (fresh := config.data_gate.freshness) else (),
        "data_gate.features": tuple(config.data_gate.features),
    }
    for key, names in named.items():
        for name in names:
            if name not in columns:
                near = nearest(name, columns, similarity=0)
                raise ConfigError(
                    f"{key}: {name!r} is not a column of the data; nearest: {escaped(near)}",
                    hint=f"columns: {', '.join(map(escaped, columns))}",
                )


def _sliced_raw(config: WorkloadConfig) -> Iterator[str]:
    """Yield the columns to slice by that preprocessing_fn cannot have made: its source does not name them."""
    module = config.transform.preprocessing_fn.rpartition(".")[0]
    read = read_module(module, root=PROJECT_ROOT)
    if read is None:
        return
    texts = {each.value for each in ast.walk(read.tree) if isinstance(each, ast.Constant)}
    for name in itertools.chain.from_iterable(config.evaluate.slices):
        if name not in texts and name not in config.transform.pass_through:
            yield name


def pipeline_request(
    name: str,
    *,
    parameters: Mapping[str, str],
    output: Path,
    beam_args: Sequence[str],
    **options: Unpack[Options],
) -> Request:
    """Return a request to run any TFX pipeline.

    Args:
        name: `module:function`, or `module:attribute` of a pipeline object.
        parameters: values of the pipeline's runtime parameters, and of its function's arguments, by name.
        output: the folder for the run's records, and for metadata if the pipeline names no store.
    """
    return Request(
        workload=name,
        target=ModuleRun(pipeline=name, folder=str(Path.cwd()), output=output),
        output=output,
        parameters=dict(parameters),
        beam_args=tuple(beam_args),
        **options,
    )
