"""How much memory a process may still take."""

from pathlib import Path


def available_memory_bytes(*, root: Path = Path("/")) -> int:
    """Memory still available to this process: the machine's, or its control group's if less."""
    lines = (root / "proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    try:
        group = root / "sys/fs/cgroup"
        limit = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
    except (OSError, ValueError):  # no control groups of version 2, or "max": no limit
        return free
    return max(0, min(free, limit))
