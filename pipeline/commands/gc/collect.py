"""Removes files that no kept run, pushed version or baseline needs, and never one that is still referred to.

Only files under `artifacts/`, `runs/` and `cache/` can be removed, and under `artifacts/` only those that TFX
made for an execution, because a pipeline may serve its models from there. Links are not followed, the
metadata store is only read, and the served versions are not touched.
"""

import functools
import math
import os
import re
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from slipway.pipeline.commands.gc.kept_runs import IN_STEPS, is_resumable, kept_runs, newest, started
from slipway.pipeline.commands.gc.removals import Cleanup, Kind, Removal
from slipway.pipeline.commands.gc.store_facts import StoreFacts, read_store
from slipway.pipeline.commands.gc.unneeded_artifacts import ArtifactFolders, children
from slipway.pipeline.engine.processes.os_processes import end_leftovers
from slipway.pipeline.engine.processes.temporary import remove_left
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.plan.baseline_changes import retired_blessings
from slipway.pipeline.plan.state_folders import KeptStates, key_of
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import alone, check_store
from slipway.pipeline.runs.outcome import pushed_to
from slipway.pipeline.runs.record import Result, RunRecord, artifacts_in
from slipway.pipeline.runs.run_target import OfWorkload
from slipway.pipeline.runs.typed_json import DocumentError
from slipway.pipeline.terminal.invocation import DEFAULT_KEEP, command

# A cached result is named by its cache key; the folder also holds compiled graphs and digests.
_KEY = re.compile(r"[0-9a-f]{64}")


def collect(output: Path, *, keep: int = DEFAULT_KEEP, dry_run: bool = False) -> Cleanup:
    """Remove what no kept run, pushed version or baseline needs.

    Cache entries are removed first, then records of runs, then artifacts. If the process is killed, the rest
    is consistent, and the next call continues.

    Args:
        keep: how many of the newest runs of each pipeline to keep in any case; at least 1.

    Raises:
        UsageError: `keep` is less than 1; or the folder does not exist, holds no run, is in use by an
            engine, cannot be written, or holds a record that cannot be read. Nothing was removed.
        PipelineError: something could not be removed.
    """
    if keep < 1:
        raise UsageError(f"--keep {keep}: must be at least 1, the latest run.", hint="use --keep 1 or more")
    if not output.is_dir():
        is_what = "is not a folder" if output.exists() else "does not exist"
        raise UsageError(f"{output} {is_what}.", hint="name the folder of the runs with --output")
    with alone(output, run_id="gc"):
        check_store(output / "metadata.db")
        try:
            cleanup = find_unneeded(output.resolve(), keep=keep)
        except OSError as error:
            raise UsageError(
                f"{error.filename} cannot be read: {error.strerror}.",
                hint="fix its permissions, then run gc again",
            ) from error
        if dry_run:
            return cleanup
        end_leftovers(output.absolute() / "runs")
        remove_left(output.absolute() / "runs")
        for removal in cleanup.removals:
            _remove(removal)
    return replace(cleanup, is_done=True)


def find_unneeded(output: Path, *, keep: int) -> Cleanup:
    """Find what `collect` would remove; change nothing.

    Args:
        output: an existing folder, with links resolved, that no engine is using.
        keep: as in `collect`.

    Raises:
        UsageError: as in `collect`.
    """
    _refuse_links(output)
    history = History(output)
    runs = list(history.runs())
    if not runs:
        raise UsageError(f"{output} has no runs yet.", hint=command("run", output=output))
    places = _Places(
        output, frozenset(str(run.target.output) for run in runs if run.target.output.is_absolute())
    )
    retired = functools.partial(retired_blessings, output)
    kept = kept_runs(runs, keep=keep, exists=places.exists, retired=retired, now=time.time())
    keys = {node.key for run in runs if run.run_id in kept for node in run.nodes}
    entries = list(_entries(output / "cache"))
    # The cache entry for a kept run's key may name another run's results, made again by `--no-cache`.
    cached = [found for path in entries if path.stem in keys and (found := history.recall(path.stem))]
    store = read_store(output / "metadata.db")
    dropped = [run for run in runs if run.run_id not in kept]
    going_on = [*newest(runs, keep), *(run for run in runs if kept.get(run.run_id) == IN_STEPS)]
    artifacts = ArtifactFolders(
        needed=places.all(_needed_uris(runs, kept, cached, store)),
        dropped=places.all(_uris(dropped)),
        nodes=_executions(runs, store),
        runs={run.run_id for run in dropped},
        since=min((started(run) for run in going_on if is_resumable(run)), default=math.inf),
    )
    removals = [
        *(_removal("cache", path) for path in entries if path.stem not in keys),
        *(_removal("state", path) for path in _unneeded_states(output, runs, kept)),
        *(_removal("run", path) for path in _unneeded_run_folders(output / "runs", runs, kept)),
        *(_removal("artifact", path) for path in artifacts.unneeded(output / "artifacts")),
    ]
    return Cleanup(output, tuple(removals), kept, checkpoints=tuple(sorted(_checkpoint_folders(runs))))


def _refuse_links(output: Path) -> None:
    for name in ("artifacts", "runs", "cache", "cache/state"):
        if (output / name).is_symlink():
            raise UsageError(
                f"{output / name} is a link, and gc removes nothing outside of {output}.",
                hint="move the whole output folder there instead, and name it with --output",
            )


@dataclass(frozen=True)
class _Places:
    """Maps recorded paths to their current locations, even after the output folder was moved or copied.

    Attributes:
        origins: the paths that this folder had when its runs were made.
    """

    output: Path
    origins: frozenset[str]

    def of(self, uri: str) -> set[Path]:
        """Return the paths that a URI can refer to; none if it is not local."""
        if not uri or "://" in uri:
            return set()
        path = Path(uri)
        moved = {self.output / path.relative_to(o) for o in self.origins if path.is_relative_to(o)}
        return {found.resolve() for found in {path, *moved}} | moved

    def all(self, uris: Iterable[str]) -> set[Path]:
        """Return the paths that any of the URIs can refer to."""
        return {path for uri in uris for path in self.of(uri)}

    def exists(self, uri: str) -> bool:
        """Return True if the URI still exists, or if that cannot be known.

        It cannot of one that is not on this machine, and of one elsewhere without the folder that held it: a
        disk may not be mounted.
        """
        paths = self.of(uri)
        is_known = any(path.is_relative_to(self.output) or path.parent.is_dir() for path in paths)
        return not is_known or any(path.exists() for path in paths)


def _checkpoint_folders(runs: Iterable[RunRecord]) -> set[str]:
    """Return what runs named as the folder of their checkpoints, which no engine cleans up."""
    targets = (run.target.target for run in runs)
    found = set()
    for target in targets:
        with suppress(DocumentError):  # the settings of another version
            found.add(target.kept.train.checkpoint.folder if isinstance(target, OfWorkload) else None)
    return {folder for folder in found if folder}


def _unneeded_run_folders(folder: Path, runs: Iterable[RunRecord], kept: Collection[str]) -> Iterator[Path]:
    known = {run.run_id for run in runs}
    for path in children(folder):
        if not path.is_dir() or path.name in kept:
            continue
        if path.name not in known and (path / "run.json").exists():
            raise UsageError(
                f"{path / 'run.json'} is not the record of that run, so it is not known "
                "which artifacts the run needs.",
                hint=f"fix it, or remove {path} if the run is not needed, then gc again",
            )
        yield path


def _unneeded_states(output: Path, runs: Iterable[RunRecord], kept: Collection[str]) -> Iterator[Path]:
    """Return saved states of unfinished nodes that no kept run can continue from."""
    resumable = [run for run in runs if run.run_id in kept and is_resumable(run)]
    keys = {node.key for run in resumable for node in run.nodes}
    return (path for path in children(KeptStates(output).root) if key_of(path) not in keys)


def _needed_uris(
    runs: Sequence[RunRecord], kept: Collection[str], cached: Iterable[Result], store: StoreFacts
) -> set[str]:
    """Return what must stay: of the kept runs and their cached results, of resolvers, and what was pushed."""
    of_runs = _uris(run for run in runs if run.run_id in kept)
    of_cache = {artifact["uri"] for result in cached for artifact in artifacts_in(result["outputs"])}
    # A pushed model may still be served, even if the run that pushed it is gone.
    return of_runs | of_cache | store.found | store.pushed | {*_verdicts(runs), *_destinations(runs)}


def _uris(runs: Iterable[RunRecord]) -> set[str]:
    return {artifact["uri"] for run in runs for node in run.nodes for artifact in artifacts_in(node.outputs)}


def _verdicts(runs: Iterable[RunRecord]) -> Iterator[str]:
    """Yield the latest verdict of every span, which any later data may be compared with.

    The same as of the store, for a store on a server, of which only the records are here.
    """
    latest: dict[tuple[str, str, object], str] = {}
    for run in runs:
        for node, verdict in () if run.target.again else run.outputs_of("schemas.DataVerdict"):
            about = (run.workload, node.id, verdict["properties"].get("span"))
            latest[about] = max(latest.get(about, verdict["uri"]), verdict["uri"], key=_execution)
    yield from latest.values()


def _execution(uri: str) -> int:
    """Return the id of the execution that made an artifact, by which TFX names its folder; 0 if unknown."""
    name = Path(uri).name
    return int(name) if name.isdecimal() else 0


def _destinations(runs: Iterable[RunRecord]) -> Iterator[str]:
    """Yield the destinations that runs pushed models to."""
    for run in runs:
        if run.pushed:
            yield run.pushed["path"]
        for node in run.nodes:
            for artifact in artifacts_in(node.outputs):
                if artifact["properties"].get("pushed") == 1:
                    yield pushed_to(artifact)


def _executions(runs: Iterable[RunRecord], store: StoreFacts) -> dict[str, set[str]]:
    """Map execution ids to the ids of their possible nodes, from the records and from the store."""
    nodes = {number: set(ids) for number, ids in store.nodes.items()}
    for run in runs:
        for node in run.nodes:
            if node.execution_id is not None:
                nodes.setdefault(str(node.execution_id), set()).add(node.id)
    return nodes


def _entries(cache: Path) -> Iterator[Path]:
    return (path for path in children(cache) if path.suffix == ".json" and _KEY.fullmatch(path.stem))


def _tree(path: Path) -> Iterator[os.stat_result]:
    yield path.lstat()
    if path.is_dir() and not path.is_symlink():
        for child in path.iterdir():
            yield from _tree(child)


def _removal(kind: Kind, path: Path) -> Removal:
    return Removal(kind, path, sum(status.st_size for status in _tree(path) if stat.S_ISREG(status.st_mode)))


def _remove(removal: Removal) -> None:
    try:
        if removal.kind == "run":
            # Without its record the folder no longer counts as a run, in case the removal is cut short.
            (removal.path / "run.json").unlink(missing_ok=True)
        if removal.path.is_dir():
            shutil.rmtree(removal.path)
        else:
            removal.path.unlink()
    except OSError as error:
        # Of what lies in a folder, the error has no more than the name.
        inside = f" ({error.filename})" if removal.path.is_dir() else ""
        raise PipelineError(
            f"{removal.path} cannot be removed{inside}: {error.strerror or error}.",
            hint="what was removed before is gone for good; fix its permissions, then run gc again",
        ) from error
