"""Identifies the process that owns a claim, and checks whether it has ended."""

import hashlib
import os
import secrets
from pathlib import Path


def this_process() -> str:
    """Return a mark of this process that other processes on the same machine can check."""
    return f"{_machine()}:{os.getpid()}:{_started(os.getpid())}"


def is_gone(mark: str) -> bool:
    """Return True if the process that made the mark has certainly ended; False on another machine."""
    machine, _, rest = mark.partition(":")
    pid, _, started = rest.partition(":")
    return machine == _machine() and pid.isdigit() and _started(int(pid)) != started


def _machine() -> str:
    """Identify one boot of one machine with one namespace of process ids (a container has its own).

    Where the kernel does not tell, as in a sandbox such as gVisor, each answer is another machine: then no
    process is known to have ended.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return secrets.token_hex(8)
    return hashlib.sha256(f"{boot}{namespace}".encode()).hexdigest()[:16]


def _started(pid: int) -> str:
    """Return the start time of a process in the kernel's ticks; empty if it has ended or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]
