"""Decides which folders below `artifacts/` to remove: only those that TFX made for an execution.

A pipeline may keep other files there, such as the served models of TFX's templates.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# TFX's folder, beside a node's output folders, for files that its executions need while they run.
_SYSTEM = ".system"
# TFX names the folder of an execution by the execution's id, and a stateful working folder by a UUID.
_WORKING_FOLDERS = "stateful_working_dir"


@dataclass(frozen=True)
class ArtifactFolders:
    """Decides which artifact folders to remove.

    TFX writes the outputs of an execution to `NODE/OUTPUT/EXECUTION_ID`, a rehearsal writes to `RUN/`.

    Attributes:
        needed: paths to keep, with all their contents.
        dropped: paths that the records of dropped runs name.
        nodes: execution id, as text -> ids of the nodes that it may belong to.
        runs: the ids of dropped runs.
        since: seconds since the epoch. A folder that no record names is kept if it was written at this time
            or later, because a resumable run may continue from files that its record does not name yet, such
            as checkpoints.
    """

    needed: Set[Path]
    dropped: Set[Path]
    nodes: Mapping[str, Set[str]]
    runs: Set[str]
    since: float

    @cached_property
    def _above(self) -> set[Path]:
        """All parents of needed paths."""
        return {parent for path in self.needed for parent in path.parents}

    @cached_property
    def _node_ids(self) -> set[str]:
        return {node_id for ids in self.nodes.values() for node_id in ids}

    def unneeded(self, folder: Path) -> Iterator[Path]:
        """Yield the topmost folders that TFX made and that hold nothing needed."""
        if self.needed & {folder, *folder.parents}:
            return
        for path in children(folder):
            if not path.is_dir():
                continue
            if path in self._above or path in self.needed:
                yield from self.unneeded(path)
            elif path.name == _SYSTEM and _is_of(path.parent, self._node_ids):
                yield from self._old(path)
            elif path.name in self.runs or _is_of(path.parent.parent, self.nodes.get(path.name, set())):
                # The folder of one execution is kept or removed as a whole.
                if not self.dropped.isdisjoint({path, *path.iterdir()}) or self._is_old(path):
                    yield path
            else:
                yield from self.unneeded(path)

    def _old(self, path: Path) -> Iterator[Path]:
        """Yield the topmost folders, from `path` downwards, that were last written before `since`."""
        if self._is_old(path):
            yield path
        elif path.is_dir() and not path.name.isdigit() and path.parent.name != _WORKING_FOLDERS:
            for child in children(path):
                yield from self._old(child)

    def _is_old(self, path: Path) -> bool:
        return _last_written(path) < self.since


def _is_of(folder: Path, node_ids: Set[str]) -> bool:
    """Return True if the folder belongs to one of the nodes, whose ids may contain slashes."""
    return any(f"{folder}".endswith(f"/{node_id}") for node_id in node_ids)


def children(folder: Path) -> list[Path]:
    """Return the contents of a folder, sorted, without links, which may lead anywhere."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.is_symlink())


def _last_written(path: Path) -> float:
    own = path.lstat().st_mtime
    if path.is_symlink() or not path.is_dir():
        return own
    return max([own, *map(_last_written, path.iterdir())])
