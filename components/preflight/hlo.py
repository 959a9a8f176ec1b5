"""Reads from the text of a compiled program (HLO) how much its devices send each other. Pure."""

import math
import re

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "f32": 4, "s32": 4, "u32": 4}
_BYTES |= {"f64": 8, "s64": 8, "u64": 8}
# An asynchronous collective is counted at its `-done`: the shape of its start has operands and results.
_COLLECTIVE = re.compile(
    r" = (?P<shape>\(.*?\)|\S+) "
    r"(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-done)?\("
)
_ARRAY = re.compile(r"(?P<type>[a-z]+\d*)\[(?P<sizes>[\d,]*)\]")


def collective_bytes(text: str) -> int:
    """Return the size of the results of all collectives in a program, in bytes on one device.

    Args:
        text: the text of the optimised program, from `compiled.as_text()`.
    """
    return sum(
        _BYTES.get(array["type"], 4) * math.prod(int(size) for size in array["sizes"].split(",") if size)
        for line in text.splitlines()
        if (found := _COLLECTIVE.search(line))
        for array in _ARRAY.finditer(found["shape"])
    )
