"""Removes what no kept run, pushed version or baseline needs, and never what something still points to.

Only what lies under `artifacts/`, `runs/` and `cache/` can be removed, and no link is followed; the metadata
store is read at most, and the served versions are not looked into.
"""

import contextlib
import math
import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError, UsageError
from pipeline.local.history import History
from pipeline.local.invocation import DEFAULT_KEEP, command
from pipeline.local.kept_states import KeptStates, key_of
from pipeline.local.lock import check_store, locked
from pipeline.local.processes import end_leftovers
from pipeline.local.record import RunRecord
from pipeline.local.retention import is_resumable, kept_runs, newest
from pipeline.local.sweep import Kind, Removal, Sweep
from pipeline.local.temporary import remove_left

# A remembered result is named by its fingerprint's key; the cache also holds compiled graphs and digests.
_KEY = re.compile(r"[0-9a-f]{64}")
# TFX names the folder of an execution by its number, a stateful working folder by a UUID.
_WORKING_FOLDERS = "stateful_working_dir"
# ML Metadata's schema 10; ModelGate and TFX's Evaluator say with these properties which model they blessed.
_BLESSED = """
    SELECT Artifact.uri, model.string_value FROM Artifact
    JOIN ArtifactProperty AS blessed
      ON blessed.artifact_id = Artifact.id AND blessed.name = 'blessed' AND blessed.int_value = 1
    LEFT JOIN ArtifactProperty AS model
      ON model.artifact_id = Artifact.id AND model.name = 'current_model'
    ORDER BY Artifact.id
"""
# What the DataGate knows of the data of each span that it let pass.
_PASSED = """
    SELECT Artifact.uri, span.int_value FROM Artifact
    JOIN Type ON Type.id = Artifact.type_id AND Type.name = 'schemas.DataVerdict'
    LEFT JOIN ArtifactProperty AS span
      ON span.artifact_id = Artifact.id AND span.name = 'span'
    ORDER BY Artifact.id
"""


def collect(output: Path, *, keep: int = DEFAULT_KEEP, dry_run: bool = False) -> Sweep:
    """Removes what no kept run, pushed version or baseline needs.

    Cache entries go first, then records of runs, then artifacts: if it is killed, what is left is whole, and
    the next call goes on.

    Args:
        output: the folder that runs write to.
        keep: how many runs of each pipeline are kept in any case, the newest ones; at least 1.
        dry_run: only tell.

    Raises:
        UsageError: `keep` is less than 1; the folder does not exist, holds no run, is in use by an engine,
            cannot be written, or holds a record that cannot be read; nothing was removed.
        PipelineError: something could not be removed.
    """
    if keep < 1:
        raise UsageError(f"--keep {keep}: must be at least 1, the latest run.", hint="use --keep 1 or more")
    if not output.is_dir():
        is_what = "is no folder" if output.exists() else "does not exist"
        raise UsageError(f"{output} {is_what}.", hint="name the folder of the runs with --output")
    with locked(output, run_id="gc"):
        check_store(output / "metadata.db")
        try:
            sweep = find_unneeded(output.resolve(), keep=keep)
        except OSError as error:
            raise UsageError(
                f"{error.filename} cannot be read: {error.strerror}.",
                hint="mend its permissions, then gc again",
            ) from error
        if dry_run:
            return sweep
        end_leftovers(output.absolute() / "runs")
        remove_left(output.absolute() / "runs")
        for removal in sweep.removals:
            _remove(removal)
    return Sweep(sweep.output, sweep.removals, sweep.kept, is_done=True)


def find_unneeded(output: Path, *, keep: int) -> Sweep:
    """Tells what `collect` removes; changes nothing.

    Args:
        output: an existing folder, links resolved, that no engine works in.
        keep: as in `collect`.

    Raises:
        UsageError: as in `collect`.
    """
    _refuse_links(output)
    history = History(output)
    runs = list(history.runs())
    if not runs:
        raise UsageError(f"{output} holds no run yet.", hint=command("run", output=output))
    places = _Places(output, frozenset(str(run.target.get("output", output)) for run in runs))
    kept = kept_runs(runs, keep=keep, exists=places.exists)
    keys = {node.key for run in runs if run.run_id in kept for node in run.nodes}
    entries = list(_entries(output / "cache"))
    # What the cache answers a kept run with need not be what that run made: `--no-cache` makes it anew.
    answers = [history.recall(path.stem) or {} for path in entries if path.stem in keys]
    named = _uris(run for run in runs if run.run_id in kept) | _found_uris(output / "metadata.db")
    named |= {artifact["uri"] for answer in answers for artifact in _artifacts(answer.get("outputs", {}))}
    artifacts = _Artifacts(
        needed=places.all(named),
        dropped=places.all(_uris(run for run in runs if run.run_id not in kept)),
        since=min((_started(run) for run in newest(runs, keep) if is_resumable(run)), default=math.inf),
    )
    removals = [
        *(_removal("cache", path) for path in entries if path.stem not in keys),
        *(_removal("state", path) for path in _unneeded_states(output, runs, kept)),
        *(_removal("run", path) for path in _unneeded_run_folders(output / "runs", runs, kept)),
        *(_removal("artifact", path) for path in artifacts.unneeded(output / "artifacts")),
    ]
    return Sweep(output, tuple(removals), kept)


def _refuse_links(output: Path) -> None:
    for name in ("artifacts", "runs", "cache", "cache/state"):
        if (output / name).is_symlink():
            raise UsageError(
                f"{output / name} is a link, and gc removes nothing outside of {output}.",
                hint="move the whole output folder there instead, and name it with --output",
            )


def _started(run: RunRecord) -> float:
    return datetime.fromisoformat(run.started_at).timestamp()


@dataclass(frozen=True)
class _Places:
    """Where what a record names lies now, also after the output folder was moved or copied.

    Attributes:
        output: the folder.
        origins: what it was called when its runs were made.
    """

    output: Path
    origins: frozenset[str]

    def of(self, uri: str) -> set[Path]:
        """The paths that a URI can stand for; none where it is no local one."""
        if not uri or "://" in uri:
            return set()
        path = Path(uri)
        moved = {self.output / path.relative_to(o) for o in self.origins if path.is_relative_to(o)}
        return {found.resolve() for found in {path, *moved}} | moved

    def all(self, uris: Iterable[str]) -> set[Path]:
        """The paths that any of them can stand for."""
        return {path for uri in uris for path in self.of(uri)}

    def exists(self, uri: str) -> bool:
        """Whether it is still there; what is not on this machine counts as there."""
        return "://" in uri or any(path.exists() for path in self.of(uri))


def _unneeded_run_folders(folder: Path, runs: Iterable[RunRecord], kept: Collection[str]) -> Iterator[Path]:
    known = {run.run_id for run in runs}
    for path in _children(folder):
        if not path.is_dir() or path.name in kept:
            continue
        if path.name not in known and (path / "run.json").exists():
            raise UsageError(
                f"{path / 'run.json'} is not the record of that run, so nobody knows what the run needs.",
                hint=f"mend it, or remove {path} if the run is not needed, then gc again",
            )
        yield path


def _unneeded_states(output: Path, runs: Iterable[RunRecord], kept: Collection[str]) -> Iterator[Path]:
    """What nodes have kept to go on with, and no run that is kept can."""
    resumable = [run for run in runs if run.run_id in kept and is_resumable(run)]
    keys = {node.key for run in resumable for node in run.nodes}
    return (path for path in _children(KeptStates(output).root) if key_of(path) not in keys)


def _uris(runs: Iterable[RunRecord]) -> set[str]:
    return {artifact["uri"] for run in runs for node in run.nodes for artifact in _artifacts(node.outputs)}


def _artifacts(outputs: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    return (artifact for artifacts in outputs.values() for artifact in artifacts)


def _entries(cache: Path) -> Iterator[Path]:
    return (path for path in _children(cache) if path.suffix == ".json" and _KEY.fullmatch(path.stem))


def _found_uris(store: Path) -> set[str]:
    """What a Resolver answers with: of each gate the latest blessing and its model, and the latest verdict.

    Verdicts are kept of every span, for any can be named. Also where the run's record is lost: with its model
    gone, no later model could be evaluated, or blessed.
    """
    if not store.exists():
        return set()
    try:
        with contextlib.closing(
            sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'Artifact'").fetchone():
                return set()
            blessed = connection.execute(_BLESSED).fetchall()
            passed = connection.execute(_PASSED).fetchall()
    except sqlite3.Error as error:
        raise UsageError(
            f"{store} cannot be read: {error}.", hint="gc knows the tables of ML Metadata 1.17 to 1.21"
        ) from error
    latest = {Path(uri).parent: (uri, model or "") for uri, model in blessed}
    verdicts = {(Path(uri).parent, span): uri for uri, span in passed}
    return {uri for found in latest.values() for uri in found} | set(verdicts.values())


@dataclass(frozen=True)
class _Artifacts:
    """Tells which artifact folders go.

    Attributes:
        needed: what stays, with all that is in it.
        dropped: what records of dropped runs name.
        since: what nobody names stays if it was written from then on, in seconds since the epoch: a run that
            can be resumed may go on with what its record does not know yet, such as checkpoints.
    """

    needed: Set[Path]
    dropped: Set[Path]
    since: float

    @cached_property
    def _above(self) -> set[Path]:
        """Every folder that holds something needed."""
        return {parent for path in self.needed for parent in path.parents}

    def unneeded(self, folder: Path) -> Iterator[Path]:
        """The highest folders in which nothing is needed."""
        if self.needed & {folder, *folder.parents}:
            return
        for path in _children(folder):
            if path in self.needed or path in self._above:
                yield from self.unneeded(path)
            elif path in self.dropped or _last_written(path) < self.since:
                yield path
            elif path.is_dir() and not path.name.isdigit() and folder.name != _WORKING_FOLDERS:
                # Within the folder of one execution nothing is picked out: it is one thing.
                yield from self.unneeded(path)


def _children(folder: Path) -> list[Path]:
    """What lies in a folder, sorted; links are left out, they may lead anywhere."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.is_symlink())


def _tree(path: Path) -> Iterator[os.stat_result]:
    yield path.lstat()
    if path.is_dir() and not path.is_symlink():
        for child in path.iterdir():
            yield from _tree(child)


def _removal(kind: Kind, path: Path) -> Removal:
    return Removal(kind, path, sum(status.st_size for status in _tree(path) if stat.S_ISREG(status.st_mode)))


def _last_written(path: Path) -> float:
    return max(status.st_mtime for status in _tree(path))


def _remove(removal: Removal) -> None:
    try:
        if removal.kind == "run":
            # A folder without its record is no run any more, should this be where it ends.
            (removal.path / "run.json").unlink(missing_ok=True)
        if removal.path.is_dir():
            shutil.rmtree(removal.path)
        else:
            removal.path.unlink()
    except OSError as error:
        raise PipelineError(
            f"{error.filename or removal.path} cannot be removed: {error.strerror}.",
            hint="what went before is gone for good; mend its permissions, then gc again",
        ) from error
