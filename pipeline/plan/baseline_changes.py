"""Shows and changes the baseline: the blessed model that the next model is compared with.

Of the blessings in the metadata store, TFX's resolver takes that of the latest model. A blessing is retired
by negating its `current_model_id`: the resolver finds no such model, while the model stays blessed for
everyone else. `baselines/<workload>.jsonl` beside the runs records what was changed, when and why.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from slipway.components.atomic_file import whole_file
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.plan.resolver_keys import blessed_runs, blessings_of
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import changing_pushes, check_store
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.typed_json import DocumentError, typed
from slipway.pipeline.screen.wording import metrics_line
from slipway.pipeline.wiring.metadata_store import connection_config, prepare_server, server_of

_MODEL_ID = "current_model_id"


@dataclass(frozen=True)
class Change:
    """One change of a baseline.

    Attributes:
        at: the time, ISO 8601 in UTC.
        action: `set` or `clear`.
        run_id: the run whose model was set; empty for `clear`.
        reason: in the user's words; may be empty.
        retired: the URIs of all blessings that are retired from then on.
    """

    at: str
    action: str
    run_id: str
    reason: str
    retired: tuple[str, ...]


@dataclass(frozen=True)
class Baseline:
    """The baseline for the next model of a workload.

    Attributes:
        run: the run that blessed the model; None if there is no baseline.
        changes: the changes that users have made, the oldest first.
    """

    workload: str
    run: RunRecord | None
    changes: tuple[Change, ...]

    def to_json(self) -> dict[str, object]:
        """Return the baseline as plain data."""
        run = self.run and {"run_id": self.run.run_id, "metrics": self.run.metrics, "pushed": self.run.pushed}
        return {"workload": self.workload, "baseline": run, "changes": [asdict(c) for c in self.changes]}

    def text(self) -> str:
        """Return the baseline on one line, then one line per change."""
        if self.run is None:
            lines = [f"{self.workload}: no baseline. The next blessed model will be it."]
        else:
            pushed = f"; pushed as version {self.run.pushed['version']}" if self.run.pushed else ""
            facts = f"{metrics_line(self.run.metrics)}{pushed}"
            lines = [f"{self.workload}: the model of run {self.run.run_id} ({facts})"]
        for change in self.changes:
            what = f"set to {change.run_id}" if change.action == "set" else "cleared"
            lines.append(f"  {change.at}  {what}" + (f": {change.reason}" if change.reason else ""))
        return "\n".join(lines)


def retired_blessings(output: Path, workload: str) -> frozenset[str]:
    """Return the URIs of the blessings that users have retired."""
    changes = _changes(output, workload)
    return frozenset(changes[-1].retired) if changes else frozenset()


def show_baseline(workload: str, output: Path, history: History | None = None) -> Baseline:
    """Return the current baseline, from the runs' records only: models blessed elsewhere are unknown.

    Args:
        history: of that folder; its `damaged` then holds the records that could not be looked at.
    """
    retired = retired_blessings(output, workload)
    history = history or History(output)
    blessed = blessed_runs(history.runs(), workload=workload, retired=retired, late=history.late_runs())
    return Baseline(workload, next(blessed, None), tuple(_changes(output, workload)))


def clear_baseline(config: WorkloadConfig, output: Path, *, reason: str) -> Baseline:
    """Retire every blessed model, so that the next model is compared with nothing.

    Raises:
        UsageError: nothing was ever run there, or an engine is at work.
    """
    with changing_pushes(output, config.name, run_id="baseline"):
        store, blessings = _blessings(config, output)
        with _noted(config.name, output, "clear", "", reason, retired=[each.uri for each in blessings]):
            _write(store, retire=blessings, restore=[])
    return show_baseline(config.name, output)


def set_baseline(config: WorkloadConfig, output: Path, run: RunRecord, *, reason: str) -> Baseline:
    """Make a run's model the baseline: retire every model that was blessed later.

    Raises:
        UsageError: the run did not bless a model of that workload, or its files are gone; or as
            `clear_baseline`.
    """
    if run.workload != config.name or not run.blessed:
        what = "blessed no model" if run.workload == config.name else f"is a run of {run.workload}"
        raise UsageError(
            f"Run {run.run_id} {what}: it cannot be the baseline of {config.name}.", hint="see runs"
        )
    with changing_pushes(output, config.name, run_id="baseline"):
        store, blessings = _blessings(config, output)
        own = [each for each in blessings if each.uri in blessings_of(run)]
        if not own:
            raise UsageError(f"The metadata store does not know the blessing of run {run.run_id}.")
        model = own[0].custom_properties["current_model"].string_value
        if "://" not in model and not Path(model).is_dir():
            raise UsageError(f"The model of run {run.run_id} is gone: {model} was removed.")
        limit = _model_id(own[0])
        later = [each for each in blessings if _model_id(each) > limit]
        before = retired_blessings(output, config.name) - {each.uri for each in own}
        retired = sorted(before | {each.uri for each in later})
        with _noted(config.name, output, "set", run.run_id, reason, retired=retired):
            _write(store, retire=later, restore=own)
    return show_baseline(config.name, output)


def _blessings(config: WorkloadConfig, output: Path) -> tuple[Any, list[Any]]:
    """Return the store, and its blessings that approve a model of the workload."""
    from ml_metadata import MetadataStore
    from ml_metadata.proto import metadata_store_pb2

    path = output / "metadata.db"
    if server_of(config.metadata, os.environ) is None:
        check_store(path)
        if not path.is_file():
            raise UsageError(f"{output} holds no metadata store: nothing was run there yet.")
        connection = metadata_store_pb2.ConnectionConfig()
        connection.sqlite.filename_uri = str(path)
    else:
        connection = connection_config(config.metadata, output)
        prepare_server(connection)
    try:
        store = MetadataStore(connection)
    except RuntimeError as error:  # ML Metadata's, of tables that are not those of its version
        raise UsageError(
            f"the metadata store cannot be used: {' '.join(str(error).split())}",
            hint="use the version of ML Metadata that wrote it, or another store",
        ) from error
    context = store.get_context_by_type_and_name("pipeline", config.name)
    artifacts = store.get_artifacts_by_context(context.id) if context else []
    return store, [
        each
        for each in artifacts
        if each.type == "ModelBlessing" and each.custom_properties["blessed"].int_value == 1
    ]


def _model_id(blessing: Any) -> int:
    return abs(int(blessing.custom_properties[_MODEL_ID].int_value))


def _write(store: Any, *, retire: Sequence[Any], restore: Sequence[Any]) -> None:
    for sign, blessings in ((-1, retire), (1, restore)):
        for each in blessings:
            each.custom_properties[_MODEL_ID].int_value = sign * _model_id(each)
    from ml_metadata.errors import StatusError

    try:
        # In one transaction: after a kill between two writes, a third model would be the baseline.
        store.put_artifacts([*retire, *restore])
    except StatusError as error:  # such as a full disk, of which it only tells SQLite's words
        raise PipelineError(
            f"The metadata store cannot be written: {' '.join(str(error).split())}",
            hint="the baseline is as it was; make room on the disk if that is full, then try again",
        ) from error


def _path(output: Path, workload: str) -> Path:
    return output / "baselines" / f"{workload}.jsonl"


def _changes(output: Path, workload: str) -> list[Change]:
    path = _path(output, workload)
    if not path.is_file():
        return []
    lines = path.read_bytes().splitlines()
    return [_change(line, f"{path}, line {n}") for n, line in enumerate(lines, start=1) if line.strip()]


def _change(line: bytes, where: str) -> Change:
    try:
        return typed(Change, json.loads(line))
    except (ValueError, RecursionError) as error:
        why = f"it is not complete JSON ({error})"
    except DocumentError as error:
        why = error.message
    raise UsageError(
        f"{where} cannot be read: {why}.",
        hint="fix that line, or remove it and with it its change of the baseline",
    )


@contextmanager
def _noted(
    workload: str, output: Path, action: str, run_id: str, reason: str, *, retired: Iterable[str]
) -> Iterator[None]:
    """Record a change that the block makes: completely or, if it fails or the disk is full, not at all.

    The record is on disk before the block begins, and takes its place once it has ended. Earlier lines stay
    as they are: a newer version may have written more into them. A link to the file stays one.

    Raises:
        UsageError: an earlier record is damaged; the block has not begun.
        OSError: the record cannot be written; the block has not begun.
    """
    at = datetime.now(UTC).isoformat(timespec="seconds")
    _changes(output, workload)  # they are refused if they cannot be read
    path = _path(output, workload).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    earlier = path.read_bytes() if path.is_file() else b""
    if earlier and not earlier.endswith(b"\n"):
        earlier += b"\n"
    change = Change(at, action, run_id, reason, tuple(retired))
    with whole_file(path, survives_power_loss=True) as partial:
        with partial.open("wb") as file:
            file.write(earlier + json.dumps(asdict(change)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())  # where a full disk may show only now
        yield
