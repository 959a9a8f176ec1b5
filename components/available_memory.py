"""Measures how much memory a process may still allocate."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


def available_memory_bytes(*, root: Path = Path("/")) -> int:
    """Return the bytes this process can use without swapping: the machine's, or its cgroup's if fewer.

    Control groups of versions 1 and 2 are read. Page cache that Linux can reclaim counts as available.
    """
    lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return max(0, min([free, *_left_in_groups(root)]))


@dataclass(frozen=True, slots=True)
class _Version:
    """The names that a version of control groups uses.

    Attributes:
        folder: the folder of its groups, under /sys/fs/cgroup.
        controllers: the controller that its line in /proc/self/cgroup names.
        limit: the file with a group's memory limit.
        used: the file with a group's memory use.
        kept: the key in `memory.stat` of the page cache that was not used recently.
    """

    folder: str
    controllers: str
    limit: str
    used: str
    kept: str


_VERSIONS = (
    _Version("", "", "memory.max", "memory.current", "inactive_file"),
    _Version("memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield the bytes left below the memory limits of this process's control group and its ancestors."""
    for version in _VERSIONS:
        top = root / "sys/fs/cgroup" / version.folder
        parts = _own_group(root, version.controllers)
        for depth in range(len(parts) + 1):
            group = top.joinpath(*parts[:depth])
            try:
                limit, used = (int((group / name).read_text()) for name in (version.limit, version.used))
                kept = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            except (OSError, ValueError):  # no such file, or "max": no limit
                continue
            yield limit - used + int(kept.get(version.kept, 0))


def _own_group(root: Path, controllers: str) -> tuple[str, ...]:
    """Return the path of this process's group as folder names; empty for the root that a container sees."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    groups = [line.split(":", 2) for line in lines]
    path = next((path for _, named, path in groups if controllers in named.split(",")), "/")
    parts = PurePosixPath(path).parts[1:]
    return () if ".." in parts else parts  # ".." leads to a group outside this process's cgroup namespace
