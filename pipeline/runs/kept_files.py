"""The files of a result as its node left them, so that a later run notices changes to them."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.data_digests import data_digests
from slipway.pipeline.runs.record import Artifact, Files, Outputs, Result, RunRecord, artifacts_in

# The end of an artifact's address in the output folder: artifacts/PIPELINE/NODE/KEY/EXECUTION.
_ARTIFACT_PARTS = 5


def kept_files(outputs: Outputs) -> Files:
    """The files of artifacts that a node has just made, including pushed versions, by their paths.

    Every byte is read once more, from memory as a rule: about a second for each gigabyte and processor.
    """
    paths = [path for path in _files(outputs) if path.is_file()]
    try:
        digests = data_digests(paths, base=Path("/"), memo=None)
    except PipelineError:
        return {}  # one has vanished meanwhile: nothing can be said, and no result is lost for it
    return {f"/{name}": (*_stamp(f"/{name}"), digest) for name, digest in digests.items()}


def file_sizes(outputs: Outputs) -> dict[str, int]:
    """The files of the artifacts, including pushed versions, with their sizes in bytes."""
    return {str(path): path.stat().st_size for path in _files(outputs) if path.is_file()}


def no_longer_kept(entry: Result, *, output: Path, now_s: float, is_doubted: bool = False) -> str:
    """Describes how a remembered result has changed; empty if it is as its node left it.

    A look at size and time of each file is all that an unchanged rerun takes. Only where the time is another,
    or the result is doubted, is the content read.

    Args:
        entry: as `History.remember` keeps it.
        output: the folder for everything that runs write, absolute; it may have been moved here.
        now_s: the time, in seconds since 1970.
        is_doubted: reads every file: a node that took them has failed.
    """
    if entry.get("made_s", 0.0) > now_s:
        made = datetime.fromtimestamp(entry["made_s"], UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"it was made at {made} UTC, which is in the future by this machine's clock"
    for artifact in artifacts_in(entry["outputs"]):
        for path in _places(artifact):
            if not Path(path).exists():
                is_moved = _moved_here(path, output) is not None
                return (
                    "its result was moved" if is_moved else f"{Path(path).name} of {artifact['type']} is gone"
                )
    for path, (size_bytes, written_ns, digest) in entry.get("files", {}).items():
        if not Path(path).is_file() or _stamp(path)[0] != size_bytes:
            return f"{path} was changed or removed"
        if (is_doubted or _stamp(path)[1] != written_ns) and _digest(path) != digest:
            return f"{path} is damaged: it is not what {entry.get('node', 'its node')} wrote"
    return ""


def moved_from(record: RunRecord, output: Path) -> Path | None:
    """The place of the output folder when a run wrote into it; None if its results are where it left them.

    Args:
        record: the run, with its nodes.
        output: the folder for everything that runs write, absolute.
    """
    paths = (path for node in record.nodes for each in artifacts_in(node.outputs) for path in _places(each))
    gone = (path for path in paths if not Path(path).exists())
    return next((old for path in gone if (old := _moved_here(path, output)) is not None), None)


def _moved_here(path: str, output: Path) -> Path | None:
    """The place that the output folder has been moved from, if an artifact that is gone lies in it."""
    old = Path(path)
    is_here = len(old.parts) > _ARTIFACT_PARTS and (output / Path(*old.parts[-_ARTIFACT_PARTS:])).exists()
    return old.parents[_ARTIFACT_PARTS - 1] if is_here else None


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
        return ""  # a disk that can no longer read it back
    return digest


def _places(artifact: Artifact) -> list[str]:
    """The place of an artifact; only local paths can be examined without a client and its delay."""
    paths = (artifact["uri"], artifact["properties"].get("pushed_destination"))
    return [path for path in paths if path and "://" not in path]
