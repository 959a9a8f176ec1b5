"""The processor of this machine: how many cores this process may use, and whether it has bfloat16."""

import os
from pathlib import Path

_BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}


def usable_cores(*, root: Path = Path("/")) -> int:
    """Return the cores that this process may use, by its affinity and its control group's quota, >= 1."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, _, period = (root / "sys/fs/cgroup/cpu.max").read_text().partition(" ")
        return max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no control groups of version 2, or "max": no quota
        return cores


def cpu_has_bfloat16(*, root: Path = Path("/")) -> bool:
    """Return True if the processor multiplies bfloat16 matrices itself; else they are slower than float32."""
    try:
        text = (root / "proc/cpuinfo").read_text()
    except OSError:
        return False
    flags = next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")
    return bool(_BFLOAT16_FLAGS & set(flags.split()))
