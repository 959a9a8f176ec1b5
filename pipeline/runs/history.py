"""Stores the runs under one output folder: creates, lists and finds them, and keeps results for the cache."""

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import TypeVar

from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.record import Files, NodeRecord, Result, RunRecord, verdict_path, write_json
from slipway.pipeline.runs.run_id import begin_of_id, new_run_id, parts_of
from slipway.pipeline.runs.run_target import NOTHING, RecordedRequest
from slipway.pipeline.runs.typed_json import DocumentError, read_document
from slipway.pipeline.terminal.invocation import command

# Work outside of runs takes seconds: an older scratch folder was left by a killed process.
_SCRATCH_LIMIT_S = 3600.0
# The file in a run's folder that says how long it has lasted, in seconds.
_ALIVE = "alive_s"
_Kind = TypeVar("_Kind")


def result_of(node: NodeRecord, record: RunRecord, *, files: Files, unmet: str = "") -> Result:
    """Return the cache entry of a finished node of a run, with the current time.

    Args:
        files: as returned by `kept_files`.
        unmet: why there is no result, if a condition was not met.
    """
    ups = map(record.node, node.upstream)
    before = [up for up in ups if up.execution_id is not None or up.state == "skipped"]
    return {
        "node": node.id,
        "run_id": record.run_id,
        "execution_id": node.execution_id,
        "read": {up.id: up.execution_id for up in before},
        "outputs": node.outputs,
        "files": files,
        "unmet": unmet,
        "made_s": time.time(),
    }


class History:
    """The stored history of one output folder.

    Args:
        output: the folder; it need not exist to be read.

    Attributes:
        damaged: run id -> why its record cannot be read, for the runs looked at so far. Such runs are
            ignored.
    """

    def __init__(self, output: Path) -> None:
        self.output = output
        self.damaged: dict[str, DocumentError] = {}
        self._runs = output / "runs"
        self._cache = output / "cache"

    def folder(self, run_id: str) -> Path:
        """Return the run's own folder: `run.json`, `events.jsonl`, `logs/`."""
        return self._runs / run_id

    def new_run_id(self) -> str:
        """Return an id that sorts after those of all existing runs."""
        names = os.listdir(self._runs) if self._runs.is_dir() else []  # noqa: PTH208
        return new_run_id(after=next(filter(parts_of, sorted(names, reverse=True)), ""))

    def new_run(self, workload: str, target: RecordedRequest = NOTHING, *, run_id: str = "") -> RunRecord:
        """Create the folder of a new run.

        Args:
            run_id: the id to use unless it is taken; empty for a new one.
        """
        while True:
            run_id = run_id or self.new_run_id()
            try:
                self.folder(run_id).mkdir(parents=True)
            except FileExistsError:
                run_id = ""
                continue
            (self.folder(run_id) / "logs").mkdir()
            return RunRecord(run_id=run_id, workload=workload, target=target, output=self.output)

    def save(self, record: RunRecord) -> None:
        """Write `run.json`."""
        write_json(self.folder(record.run_id) / "run.json", record.to_json())

    def keep_verdict(self, run_id: str, node_id: str, verdict: Mapping[str, object]) -> None:
        """Keep the verdict of a gate that stopped the run, whose outputs are removed."""
        path = verdict_path(self.folder(run_id), node_id)
        path.parent.mkdir(exist_ok=True)
        write_json(path, verdict)

    def note_alive(self, run_id: str, wall_s: float) -> None:
        """Record how long a run has lasted so far, because a killed run cannot report it."""
        with contextlib.suppress(OSError):  # a full disk: writing the record fails too, and reports it
            (self.folder(run_id) / _ALIVE).write_text(f"{wall_s:.3f}\n", encoding="utf-8")

    def alive_s(self, run_id: str) -> float:
        """Return the time that a run is known to have lasted, in seconds; 0 if nothing was recorded."""
        try:
            return float((self.folder(run_id) / _ALIVE).read_text(encoding="utf-8"))
        except (OSError, ValueError):  # killed before the first note, or while writing one
            return 0.0

    def forget_alive(self, run_id: str) -> None:
        """Remove the file of `note_alive`: a finished run's record holds its duration."""
        (self.folder(run_id) / _ALIVE).unlink(missing_ok=True)

    def append_event(self, run_id: str, event: Mapping[str, object]) -> None:
        """Add one line to `events.jsonl`, with the time in UTC."""
        line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **event})
        with (self.folder(run_id) / "events.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    def runs(self, *, prefix: str = "", leave_out: tuple[str, ...] = ()) -> Iterator[RunRecord]:
        """Yield the runs with a readable record, the newest first; each is read on demand.

        Args:
            prefix: the start of their ids.
            leave_out: fields not to read: without `nodes`, reading thousands of records takes an eighth of
                the time.
        """
        if not self._runs.is_dir():
            return
        # Sort by name alone: checking each folder would take longer than reading the newest record.
        names = sorted((name for name in os.listdir(self._runs) if name.startswith(prefix)), reverse=True)  # noqa: PTH208
        for name in names:
            record = self._read(self._runs / name / "run.json", leave_out)
            if record is not None:
                yield record

    def late_runs(self) -> list[RunRecord]:
        """Return the runs, the newest first, that went on after a later one had begun.

        A run that was resumed, or whose steps were taken again, may have made a newer model than later runs.
        The times of the records tell which to look at, so that few are read.
        """
        found = (self._read(self._runs / name / "run.json", ()) for name in self._changed_late())
        return [record for record in found if record is not None and (record.resumed or record.in_steps)]

    def _changed_late(self) -> Iterator[str]:
        names = os.listdir(self._runs) if self._runs.is_dir() else []  # noqa: PTH208
        for later, name in pairwise(sorted(names, reverse=True)):
            with contextlib.suppress(OSError):
                changed_s = os.stat(f"{self._runs}/{name}/run.json").st_mtime  # noqa: PTH116  (thousands)
                # As text, as ids sort by the time at which the runs began.
                if begin_of_id(changed_s) > later:
                    yield name

    def latest_runs(self, workload: str, *, limit: int) -> Iterator[RunRecord]:
        """Return up to `limit` newest runs of one pipeline.

        Only the newest `10 * limit` runs of any pipeline are searched.
        """
        own = (run for run in islice(self.runs(), 10 * limit) if run.workload == workload)
        return islice(own, limit)

    def begun_runs(self, workload: str) -> Iterator[RunRecord]:
        """Return the runs of one pipeline that reached their nodes, the newest first."""
        return (run for run in self.runs() if run.workload == workload and run.nodes)

    def run(self, run_id: str) -> RunRecord | None:
        """Return the run with exactly that id; None if there is none, or its record cannot be read."""
        return next((run for run in self.runs(prefix=run_id) if run.run_id == run_id), None)

    def _read(self, path: Path, leave_out: tuple[str, ...]) -> RunRecord | None:
        if not path.is_file():
            # A run that died before writing its first record has nothing to report.
            return None
        try:
            return _own_record(path, self.output, leave_out)
        except FileNotFoundError:  # removed meanwhile, by gc or as a run that was refused
            return None
        except DocumentError as error:
            self.damaged[path.parent.name] = error
            return None

    def find(self, name: str | None) -> RunRecord:
        """Return a run by its id or the start of it; the latest run if no name is given.

        Raises:
            UsageError: there is no such run, or several; or its record cannot be read.
        """
        latest = next((run for run in self.runs() if not run.rollback), None)
        if name in (None, "latest"):
            self._refuse_damaged(self.damaged, latest)
            if latest is not None:
                return latest
        found = list(self.runs(prefix=name or "latest"))
        if len(found) == 1:
            return found[0]
        if not found:
            self._refuse_damaged((each for each in self.damaged if name and each.startswith(name)), latest)
        if latest is None:
            raise UsageError(f"{self.output} has no runs yet.", hint=command("run", output=self.output))
        if not found:
            raise UsageError(
                f"No run {name!r}. Latest: {latest.run_id!r}.", hint=command("runs", output=self.output)
            )
        raise UsageError(f"{name!r} fits {len(found)} runs: {', '.join(r.run_id for r in found[:5])}.")

    def _refuse_damaged(self, run_ids: Iterable[str], latest: RunRecord | None) -> None:
        for run_id in sorted(run_ids, reverse=True):
            path = self.folder(run_id) / "run.json"
            other = f"name another run, such as {latest.run_id}; or " if latest else ""
            raise UsageError(
                self.damaged[run_id].message,
                hint=f"{other}give this one up: mv {path} {path}.damaged   # its results stay cached",
            )

    def save_fingerprints(self, run_id: str, prints: Mapping[str, Fingerprint]) -> None:
        """Store the run's fingerprints by node id, so that the next plan can name the changes."""
        document = {node_id: item.to_json() for node_id, item in prints.items()}
        write_json(self.folder(run_id) / "fingerprints.json", document)

    def fingerprint_of(self, run: RunRecord, node_id: str) -> Fingerprint | None:
        """Return a node's fingerprint in a run; None if it was not kept, or cannot be read."""
        try:
            kept = read_document(dict[str, str], self.folder(run.run_id) / "fingerprints.json")
            return Fingerprint.from_json(kept[node_id]) if node_id in kept else None
        except (FileNotFoundError, PipelineError):
            return None

    def last_fingerprints(self, workload: str) -> dict[str, Fingerprint]:
        """Return, for each node of that pipeline, its fingerprint in the latest run that completed it."""
        latest: dict[str, Fingerprint] = {}
        for run in self.runs():
            if run.workload != workload:
                continue
            done = {n.id for n in run.nodes if n.state in ("complete", "cached")} - latest.keys()
            if not done:
                continue
            try:
                kept = read_document(dict[str, str], self.folder(run.run_id) / "fingerprints.json")
                latest.update({i: Fingerprint.from_json(kept[i]) for i in done if i in kept})
            except (FileNotFoundError, PipelineError):
                continue  # they only explain why a node runs
            if latest.keys() >= {n.id for n in run.nodes}:
                break
        return latest

    def remember(self, key: str, entry: Mapping[str, object]) -> None:
        """Store the result of a node under its key, see `result_of`; or a compiled graph."""
        self._cache.mkdir(parents=True, exist_ok=True)
        write_json(self._cache / f"{key}.json", entry)

    def recall(self, key: str) -> Result | None:
        """Return the result that `remember` stored under the key; None if there is none, or it is damaged."""
        return self._recall(key, Result)

    def recall_graph(self, key: str) -> Graph | None:
        """Return the graph that `remember` stored under the key; None if there is none, or it is damaged."""
        return self._recall(key, Graph)

    def has_graphs(self) -> bool:
        """Return whether any compiled graph is stored."""
        return next(self._cache.glob("graph-*.json"), None) is not None

    def _recall(self, key: str, kind: type[_Kind]) -> _Kind | None:
        try:
            return read_document(kind, self._cache / f"{key}.json")
        except (FileNotFoundError, DocumentError):
            return None

    def discard(self, record: RunRecord) -> None:
        """Remove a run that was rejected before anything ran, and the folder of runs if it is empty then."""
        folder = self.folder(record.run_id)
        shutil.rmtree(folder)
        with contextlib.suppress(OSError):  # the folder is not empty
            folder.parent.rmdir()

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Create a temporary folder with `logs/` and `tmp/` for work outside of runs; remove it at the end.

        Raises:
            UsageError: the output folder cannot be written.
        """
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            self._remove_old_scratch()
            folder = Path(tempfile.mkdtemp(prefix="plan-", dir=self._cache))
            for name in ("logs", "tmp"):
                (folder / name).mkdir()
        except OSError as error:
            raise UsageError(
                f"{self.output} cannot be written: {error.strerror}.",
                hint="choose another folder with --output",
            ) from error
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _remove_old_scratch(self) -> None:
        for left in self._cache.glob("plan-*"):
            with contextlib.suppress(FileNotFoundError):  # another command has ended meanwhile
                if time.time() - left.stat().st_mtime > _SCRATCH_LIMIT_S:
                    shutil.rmtree(left, ignore_errors=True)

    @property
    def digest_memo(self) -> Path | None:
        """The file for the digests of unchanged data files; None if the folder cannot be written."""
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None  # a plan alone still works, more slowly
        return self._cache / "digests.json"


def _own_record(path: Path, output: Path, leave_out: tuple[str, ...]) -> RunRecord:
    """Return the record after checking its id: files are written to the folder named by the id."""
    record = read_document(RunRecord, path, leave_out=leave_out)
    record.output = output
    if record.run_id != path.parent.name:
        raise DocumentError(f"{path} cannot be read: run_id is {record.run_id!r}, not its folder's name")
    return record
