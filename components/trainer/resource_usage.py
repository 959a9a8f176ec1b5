"""Measures what this process uses: processor, memory, disk, and the device's memory.

Reads the kernel's own accounting, which costs nothing, so that the training interpreter needs no further
package. Linux only.
"""

import os
import resource
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The resources used since the process started.

    Attributes:
        cpu_s: seconds of processor time, summed over all cores.
        memory_bytes: resident memory now.
        memory_peak_bytes: peak of resident memory.
        read_bytes: bytes read from disk, not from the kernel's cache; 0 where the kernel does not tell.
        written_bytes: bytes written to disk; 0 where it does not tell.
        device_memory_peak_bytes: peak of the first device's memory in use; None on a CPU.
    """

    cpu_s: float
    memory_bytes: int
    memory_peak_bytes: int
    read_bytes: int
    written_bytes: int
    device_memory_peak_bytes: int | None


def usage() -> Usage:
    """Return what this process has used so far."""
    accounts = resource.getrusage(resource.RUSAGE_SELF)
    files = _files()
    resident_pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Usage(
        cpu_s=accounts.ru_utime + accounts.ru_stime,
        memory_bytes=resident_pages * os.sysconf("SC_PAGE_SIZE"),
        memory_peak_bytes=accounts.ru_maxrss * 1024,  # the kernel counts in KiB
        read_bytes=files.get("read_bytes", 0),
        written_bytes=files.get("write_bytes", 0),
        device_memory_peak_bytes=_device_memory_peak_bytes(),
    )


def _files(accounts: Path = Path("/proc/self/io")) -> dict[str, int]:
    try:
        told = accounts.read_text().splitlines()
    except OSError:  # a kernel without this accounting, as some of small virtual machines
        return {}
    return {name: int(number) for name, number in (line.split(": ") for line in told)}


def _device_memory_peak_bytes() -> int | None:
    import keras

    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")
    if backend == "torch":
        import torch

        return int(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else None
    import tensorflow as tf

    gpus = tf.config.list_logical_devices("GPU")
    return int(tf.config.experimental.get_memory_info(gpus[0].name)["peak"]) if gpus else None
