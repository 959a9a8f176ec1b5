"""Decides whether a training step fits into a device's memory; nothing else decides that. Pure.

The compiler's own verdict counts: a program that it refuses for lack of memory does not fit, and one that it
accepts does if it leaves room for the next batch. A step whose variables alone exceed the memory need not be
compiled.
"""

import re
from dataclasses import dataclass
from typing import Protocol

_NEEDED = re.compile(r"[Uu]sed ([\d.]+)([KMGT]) of|\(([\d.]+)([KMGT])\) exceeds")
_AVAILABLE = re.compile(r"of ([\d.]+)([KMGT]) hbm|exceeds available HBM \(([\d.]+)([KMGT])\)", re.IGNORECASE)
WITHIN_THE_CHIP = re.compile(
    r"\A(?!.*memory space hbm).*(?:memory space (?:vmem|smem|sflag|cmem)|scoped vmem)",
    re.IGNORECASE | re.DOTALL,
)
"""Matches errors about the memories within the chip, of which one operation needs too much."""
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class MemoryAnalysis(Protocol):
    """XLA's analysis of a compiled program's memory, in bytes (`jax.stages.Compiled.memory_analysis`)."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int


@dataclass(frozen=True, slots=True)
class Shortage:
    """The memory that a refused program needs, and what is available: bytes of one device, 0 if unknown."""

    needed_bytes: int
    available_bytes: int


def held_bytes(memory: MemoryAnalysis) -> int:
    """Return the memory that a program holds at once, in bytes of one device.

    That is the sum of its arguments, its results except those that replace an argument, and its temporaries.
    (`peak_memory_in_bytes` counts some results twice.)
    """
    results = memory.output_size_in_bytes - memory.alias_size_in_bytes
    return memory.argument_size_in_bytes + results + memory.temp_size_in_bytes


def shortage(message: str) -> Shortage | None:
    """Return the shortage that the compiler's error reports; None if it is an error of another kind.

    Source of the wording: the errors of XLA and of libtpu 0.0.42.
    """
    if "RESOURCE_EXHAUSTED" not in message and "Ran out of memory" not in message:
        return None
    if WITHIN_THE_CHIP.search(message):
        return None
    return Shortage(_amount(_NEEDED, message), _amount(_AVAILABLE, message))


def state_shortage(state_bytes: int, available_bytes: int) -> Shortage | None:
    """Return the shortage of a step whose variables alone do not fit; None if they fit or a size is unknown.

    Args:
        state_bytes: the size of all variables on one device; 0 if unknown.
        available_bytes: the memory that the compiler may use; 0 if unknown.
    """
    if 0 < available_bytes < state_bytes:
        return Shortage(state_bytes, available_bytes)
    return None


def next_batch_shortage(held_bytes: int, batch_bytes: int, available_bytes: int) -> Shortage | None:
    """Return the shortage of a step that fits by itself, but not beside the next batch; None if both fit.

    A training has the next batch on the device while a step runs: Keras 3.15 on JAX transfers it before the
    step that is called is done (`JAXEpochIterator`), and so does TensorFlow's `TPUStrategy`.

    Args:
        held_bytes: of the program, see above, on one device.
        batch_bytes: the size of a batch on one device.
        available_bytes: the memory that the compiler may use; 0 if unknown.
    """
    if 0 < available_bytes < held_bytes + batch_bytes:
        return Shortage(held_bytes + batch_bytes, available_bytes)
    return None


def _amount(pattern: re.Pattern[str], message: str) -> int:
    found = pattern.search(message)
    if found is None:
        return 0
    number, unit = (group for group in found.groups() if group is not None)
    return round(float(number) * _UNITS[unit])
