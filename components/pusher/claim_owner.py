"""Which process a claim belongs to, and whether it is known to be gone."""

import hashlib
import os
from pathlib import Path


def this_process() -> str:
    """A mark of this process that another one on the same machine can look up."""
    return f"{_machine()}:{os.getpid()}:{_started(os.getpid())}"


def is_gone(mark: str) -> bool:
    """Whether the process that made the mark has ended for certain; False for one of another machine."""
    machine, _, rest = mark.partition(":")
    pid, _, started = rest.partition(":")
    return machine == _machine() and pid.isdigit() and _started(int(pid)) != started


def _machine() -> str:
    """One boot of one machine, as seen from one set of process ids (a container has its own)."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    return hashlib.sha256(f"{boot}{Path('/proc/self/ns/pid').readlink()}".encode()).hexdigest()[:16]


def _started(pid: int) -> str:
    """When the process started, in the kernel's ticks; empty where there is none, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]
