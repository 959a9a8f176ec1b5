"""Remembers the files of a result as its node left them, so that a later run notices changes to them."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.data_digests import data_digests
from slipway.pipeline.runs.record import Artifact, Files, Outputs, Result, RunRecord, artifacts_in

# Number of parts at the end of an artifact's path: artifacts/PIPELINE/NODE/KEY/EXECUTION.
_ARTIFACT_PARTS = 5


def kept_files(outputs: Outputs) -> Files:
    """Return the files of artifacts that a node has just made, including pushed versions, by path.

    Reads every byte once more, usually from the page cache: about a second per gigabyte and core.
    """
    paths = [path for path in _files(outputs) if path.is_file()]
    try:
        digests = data_digests(paths, base=Path("/"), memo=None)
    except PipelineError:
        return {}  # a file has vanished: nothing can be checked later, but the result is kept
    return {f"/{name}": (*_stamp(f"/{name}"), digest) for name, digest in digests.items()}


def file_sizes(outputs: Outputs) -> dict[str, int]:
    """Return the files of the artifacts, including pushed versions, with their sizes in bytes."""
    return {str(path): path.stat().st_size for path in _files(outputs) if path.is_file()}


def no_longer_kept(entry: Result, *, output: Path, now_s: float, is_doubted: bool = False) -> str:
    """Describe how a cached result has changed; empty if it is as its node left it.

    An unchanged rerun only looks at the size and time of each file. The content is read only if the time
    differs, or if the result is doubted.

    Args:
        entry: as stored by `History.remember`.
        output: the folder for everything that runs write, absolute; it may have been moved here.
        now_s: the current time, in seconds since 1970.
        is_doubted: whether to read every file, because a node that used them has failed.
    """
    if entry.get("made_s", 0.0) > now_s:
        made = datetime.fromtimestamp(entry["made_s"], UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"it was made at {made} UTC, which is in the future by this machine's clock"
    for artifact in artifacts_in(entry["outputs"]):
        for path in _places(artifact):
            if not _is_there(path):
                is_moved = _moved_here(path, output) is not None
                return (
                    "its result was moved" if is_moved else f"{Path(path).name} of {artifact['type']} is gone"
                )
    for path, (size_bytes, written_ns, digest) in entry.get("files", {}).items():
        try:
            stamp = _stamp(path)
        except OSError:
            stamp = (-1, 0)
        if stamp[0] != size_bytes or not Path(path).is_file():
            return f"{path} was changed or removed"
        if (is_doubted or stamp[1] != written_ns) and _digest(path) != digest:
            return f"{path} is damaged: it is not what {entry.get('node', 'its node')} wrote"
    return ""


def moved_from(record: RunRecord, output: Path) -> Path | None:
    """Return where the output folder was when a run wrote into it; None if it was not moved.

    Args:
        output: the folder for everything that runs write, absolute.
    """
    paths = (path for node in record.nodes for each in artifacts_in(node.outputs) for path in _places(each))
    gone = (path for path in paths if not _is_there(path))
    return next((old for path in gone if (old := _moved_here(path, output)) is not None), None)


def _moved_here(path: str, output: Path) -> Path | None:
    """Return where the output folder was moved from, if a missing artifact is found in it."""
    old = Path(path)
    is_here = len(old.parts) > _ARTIFACT_PARTS and (output / Path(*old.parts[-_ARTIFACT_PARTS:])).exists()
    return old.parents[_ARTIFACT_PARTS - 1] if is_here else None


def _is_there(path: str) -> bool:
    """Return True if a path exists; False also where it cannot be looked at, as on a share that is gone."""
    return os.path.exists(path)  # noqa: PTH110  (`Path.exists` raises some errors)


def _files(outputs: Outputs) -> Iterator[Path]:
    folders = (Path(path) for artifact in artifacts_in(outputs) for path in _places(artifact))
    for folder in folders:
        yield from (folder,) if folder.is_file() else folder.rglob("*")


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)  # noqa: PTH116  (every file of every result, in each run)
    return status.st_size, status.st_mtime_ns


def _digest(path: str) -> str:
    try:
        [digest] = data_digests([Path(path)], base=Path("/"), memo=None).values()
    except PipelineError:
        return ""  # the disk can no longer read the file
    return digest


def _places(artifact: Artifact) -> list[str]:
    """Return the local paths of an artifact: remote ones cannot be examined without a slow client."""
    paths = (artifact["uri"], artifact["properties"].get("pushed_destination"))
    return [path for path in paths if path and "://" not in path]
