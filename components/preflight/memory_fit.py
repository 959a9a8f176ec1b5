"""Whether a training step fits into a device's memory: the one place that says so. Pure.

The compiler's own verdict is the rule: what it takes fits, and what it refuses for lack of memory does not. A
step whose variables alone are more than there is need not be compiled.
"""

import re
from dataclasses import dataclass
from typing import Protocol

_NEEDED = re.compile(r"[Uu]sed ([\d.]+)([KMGT]) of|\(([\d.]+)([KMGT])\) exceeds")
_AVAILABLE = re.compile(r"of ([\d.]+)([KMGT]) hbm|exceeds available HBM \(([\d.]+)([KMGT])\)", re.IGNORECASE)
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class MemoryAnalysis(Protocol):
    """What XLA says of a compiled program's memory, in bytes (`jax.stages.Compiled.memory_analysis`)."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int


@dataclass(frozen=True, slots=True)
class Shortage:
    """What a refused program would need, and what there is: bytes of one device, 0 where it was not told."""

    needed_bytes: int
    available_bytes: int


def held_bytes(memory: MemoryAnalysis) -> int:
    """Return the memory that a program holds at once, in bytes of one device.

    That is its arguments, its results except those that replace an argument, and what it makes on the way.
    (`peak_memory_in_bytes` counts some results twice.)
    """
    results = memory.output_size_in_bytes - memory.alias_size_in_bytes
    return memory.argument_size_in_bytes + results + memory.temp_size_in_bytes


def shortage(message: str) -> Shortage | None:
    """Return what the compiler says of memory when it refuses a program; None if the reason is another.

    Source of the wording: XLA's and libtpu 0.0.42's own errors.
    """
    if "RESOURCE_EXHAUSTED" not in message and "Ran out of memory" not in message:
        return None
    return Shortage(_amount(_NEEDED, message), _amount(_AVAILABLE, message))


def state_shortage(state_bytes: int, available_bytes: int) -> Shortage | None:
    """Return the shortage of a step whose variables alone do not fit; None if they do, or nothing is known.

    Args:
        state_bytes: of all variables, on one device; 0: not known.
        available_bytes: of memory that the compiler may use; 0: not known.
    """
    if 0 < available_bytes < state_bytes:
        return Shortage(state_bytes, available_bytes)
    return None


def _amount(pattern: re.Pattern[str], message: str) -> int:
    found = pattern.search(message)
    if found is None:
        return 0
    number, unit = (group for group in found.groups() if group is not None)
    return round(float(number) * _UNITS[unit])
