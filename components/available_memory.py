"""How much memory a process may still take."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def available_memory_bytes(*, root: Path = Path("/")) -> int:
    """Memory still available to this process without swapping: the machine's, or its control group's if less.

    What Linux keeps of files only because there is room for it counts as available.
    """
    lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return max(0, min([free, *_left_in_groups(root)]))


def _left_in_groups(root: Path) -> Iterator[int]:
    """What is left to this process's control group (version 2), and to those around it, of their limits."""
    top = root / "sys/fs/cgroup"
    parts = _own_group(root)
    for depth in range(len(parts) + 1):
        group = top.joinpath(*parts[:depth])
        try:
            limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
            kept = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # not there, or "max": no limit
            continue
        yield limit - used + int(kept.get("inactive_file", 0))


def _own_group(root: Path) -> tuple[str, ...]:
    """The folders that lead to this process's group; none where it is the outermost that a container sees."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
    parts = PurePosixPath(path).parts[1:]
    return () if ".." in parts else parts  # a group outside of what this process sees
