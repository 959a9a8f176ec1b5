"""How much memory a process may still take."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


def available_memory_bytes(*, root: Path = Path("/")) -> int:
    """Memory still available to this process without swapping: the machine's, or its control group's if less.

    Groups of version 1 and 2 count. What Linux keeps of files
    only because there is room for it counts as available.
    """
    lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return max(0, min([free, *_left_in_groups(root)]))


@dataclass(frozen=True, slots=True)
class _Version:
    """How a version of control groups names things.

    Attributes:
        folder: where its groups are, under /sys/fs/cgroup.
        controllers: those that a line of /proc/self/cgroup names.
        limit: the file with the limit of a group.
        used: the file with what it uses.
        kept: of `memory.stat`, the line with what is kept of files, and was not in use of late.
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
    """What is left to this process's control group, and to those around it, of their limits."""
    for version in _VERSIONS:
        top = root / "sys/fs/cgroup" / version.folder
        parts = _own_group(root, version.controllers)
        for depth in range(len(parts) + 1):
            group = top.joinpath(*parts[:depth])
            try:
                limit, used = (int((group / name).read_text()) for name in (version.limit, version.used))
                kept = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            except (OSError, ValueError):  # not there, or "max": no limit
                continue
            yield limit - used + int(kept.get(version.kept, 0))


def _own_group(root: Path, controllers: str) -> tuple[str, ...]:
    """The folders that lead to this process's group; none where it is the outermost that a container sees."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    groups = [line.split(":", 2) for line in lines]
    path = next((path for _, named, path in groups if controllers in named.split(",")), "/")
    parts = PurePosixPath(path).parts[1:]
    return () if ".." in parts else parts  # a group outside of what this process sees
