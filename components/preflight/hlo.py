"""Reads from the text of a compiled program (HLO) what its devices send each other. Pure."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "f32": 4, "s32": 4, "u32": 4}
_BYTES |= {"f64": 8, "s64": 8, "u64": 8}
_ALL_REDUCE_SCATTER = "all-reduce-scatter"
"""libtpu's name of a computation that reduces an array and keeps this device's part: written as an all-reduce
with a slice of it, and done as one reduce-scatter."""
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
"""The operations by which devices send each other something."""
# An asynchronous collective is counted at its `-done`: the shape of its start has operands and results.
_COLLECTIVE = re.compile(
    rf"%?(?P<name>[\w.-]+) = (?P<shape>\(.*?\)|\S+) (?P<kind>{'|'.join(KINDS)})(?P<phase>-start|-done)?\("
)
_ARRAY = re.compile(r"(?P<type>[a-z]\w*)\[(?P<sizes>[\d,]*)\]")
_NAME = re.compile(r"[\w.-]+")
BEGINS = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.-]+) \(.*\) -> (?P<result>.*) \{$")
"""The line that begins a part of a program, a computation."""
_LISTED = re.compile(r"replica_groups=\{\{([\d,]+)\}")
_PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)+)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\] ?\{([^}]*)\}")


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One collective of a program.

    Attributes:
        kind: one of `KINDS`.
        result_bytes: the size of its results on one device.
        members: the devices of its first group, as positions in the program's list of devices, which are
            those that send each other something; empty if it is all of them, or the text does not say.
        pairs: of a collective-permute instead, which device sends to which.
        computation: the part of the program that it is in, by which `hlo_loops` says how often it is run.
    """

    kind: str
    result_bytes: int
    members: tuple[int, ...] = ()
    pairs: tuple[tuple[int, ...], ...] = ()
    computation: str = ""


def collectives(text: str) -> Iterator[Sent]:
    """Yield the collectives of a program, in its order; one inside a loop once, with where it is.

    Args:
        text: the text of the optimised program, from `compiled.as_text()`.
    """
    started: dict[str, Sent] = {}
    computation = result = ""
    for line in text.splitlines():
        if begins := BEGINS.match(line):
            computation, result = begins["name"], begins["result"]
        found = _COLLECTIVE.search(line)
        if found is None:
            continue
        sent = Sent(
            kind=found["kind"],
            result_bytes=size_bytes(found["shape"]),
            members=_members(line),
            pairs=_pairs(line),
            computation=computation,
        )
        if sent.kind == "all-reduce" and computation.startswith(_ALL_REDUCE_SCATTER):
            sent = replace(sent, kind="reduce-scatter", result_bytes=size_bytes(result))
        if found["phase"] == "-start":
            started[found["name"]] = sent
            continue
        if found["phase"] == "-done":
            # Its operand may be written with its shape, which has names of its own.
            names = _NAME.findall(line, found.end())
            start = next((started[name] for name in names if name in started), sent)
            sent = replace(start, result_bytes=sent.result_bytes)
        yield sent


def size_bytes(shape: str) -> int:
    """Return the size of an array, or of all arrays of a tuple, written as "bf16[128,64]{1,0}"."""
    return sum(
        (1 if array["type"].startswith("f8") else _BYTES.get(array["type"], 4))
        * math.prod(map(int, filter(None, array["sizes"].split(","))))
        for array in _ARRAY.finditer(shape)
    )


def _members(line: str) -> tuple[int, ...]:
    """Return the first group of a collective, in any of the three forms in which XLA writes groups."""
    if listed := _LISTED.search(line):
        return _numbers(listed[1])
    if iota := _IOTA.search(line):
        groups, sizes = _numbers(iota[1]), _numbers(iota[2])
        order = _numbers(iota[3]) if iota[3] else tuple(range(len(sizes)))
        ids = np.arange(math.prod(sizes)).reshape(sizes).transpose(order).reshape(groups)
        return tuple(ids[0].tolist())
    if mesh := _MESH.search(line):
        sizes_by_axis = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", mesh[1])}
        along = re.findall(r"'([^']*)'", mesh[2])
        ids = np.arange(math.prod(sizes_by_axis.values())).reshape(tuple(sizes_by_axis.values()))
        at = tuple(slice(None) if name in along else 0 for name in sizes_by_axis)
        return tuple(np.ravel(ids[at]).tolist())
    return ()


def _pairs(line: str) -> tuple[tuple[int, ...], ...]:
    found = _PAIRS.search(line)
    return tuple(map(_numbers, re.findall(r"[\d,]+", found[1].replace("},", "}")))) if found else ()


def _numbers(words: str) -> tuple[int, ...]:
    return tuple(int(each) for each in words.split(","))
