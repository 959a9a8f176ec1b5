"""Reads from the text of a compiled program (HLO) how often its loops turn, and what they multiply. Pure.

The compiler's analysis of cost counts the body of a loop once, however often it turns. Turns are known where
a loop counts from a constant to a constant in constant steps, as JAX's with a fixed number of turns do.
"""

import functools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from slipway.components.preflight.hlo import BEGINS, size_bytes

_NAMED = re.compile(r"^\s+(?P<root>ROOT )?%?(?P<name>[\w.-]+) = ")
_KIND = re.compile(r" ([a-z][\w-]*)\(")
_SHAPE = re.compile(r"[a-z]+\d*\[([\d,]*)\]")
_OPERAND = re.compile(r"%([\w.-]+)")
_CALLED = re.compile(r"(?:calls|body|condition|to_apply|(?:true|false)_computation)=%?([\w.-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_ALSO_TOLD = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_LABELS = re.compile(r"dim_labels=([^_,]+)_([^-,]+)->([^,\s]+)")
_GROUPS = re.compile(r"(feature|batch)_group_count=(\d+)")
_SAME = ("copy", "bitcast", "convert")
"""Operations whose result has the value of their operand."""
_MOVES_NOTHING = ("bitcast", "constant", "get-tuple-element", "parameter", "tuple")
_RUNS_OTHERS = ("async-start", "call", "conditional", "while")


class While(NamedTuple):
    """A loop of a program.

    Attributes:
        name: JAX's name of the operation, with the layers that it is in, such as "jit(f)/jvp(lstm)/while".
        turns: how often its body is computed each time that the loop is reached; None if unknown.
        more_bytes: the most that all turns after the first read and write, in memory of any kind: of an array
            that a part is taken of, the whole one counts. Infinite if unknown.
    """

    name: str
    turns: int | None
    more_bytes: float


@dataclass(frozen=True)
class _Instruction:
    name: str
    kind: str
    shape: tuple[int, ...]
    size_bytes: int
    operands: tuple[str, ...]
    text: str
    is_root: bool


@dataclass
class _Computation:
    instructions: dict[str, _Instruction] = field(default_factory=dict)

    @property
    def root(self) -> _Instruction | None:
        return next((each for each in self.instructions.values() if each.is_root), None)


class Loops:
    """The loops of a program.

    Args:
        text: the text of the optimised program, from `compiled.as_text()`.
    """

    def __init__(self, text: str) -> None:
        self._computations: dict[str, _Computation] = {}
        self._entry = ""
        now = _Computation()
        for line in text.splitlines():
            if begins := BEGINS.match(line):
                now = self._computations[begins["name"]] = _Computation()
                self._entry = begins["name"] if begins["entry"] else self._entry
            elif found := _instruction(line):
                now.instructions[found.name] = found

    @functools.cached_property
    def found(self) -> tuple[While, ...]:
        """The loops, in the order in which they are reached."""
        return tuple(
            While(
                named[1] if (named := _OP_NAME.search(each.text)) else "",
                turns := self._turns(each, within),
                math.inf if turns is None else times * max(turns - 1, 0) * self._turn_bytes(each),
            )
            for name, times in self.times.items()
            for within in [self._computations[name]]
            for each in within.instructions.values()
            if each.kind == "while"
        )

    def _turn_bytes(self, loop: _Instruction) -> float:
        body = self._named("body", loop.text)
        if body is None or any(each.kind in _RUNS_OTHERS for each in body.instructions.values()):
            return math.inf
        known = body.instructions
        return sum(
            each.size_bytes + sum(known[name].size_bytes for name in each.operands if name in known)
            for each in known.values()
            if each.kind not in _MOVES_NOTHING
        )

    @functools.cached_property
    def times(self) -> dict[str, int]:
        """How often each computation is reached in a run, by its name; a loop of unknown turns counts once.

        The computations of single numbers, as that of a sum, are not among them.
        """
        return self._reached(once=False)

    def _reached(self, *, once: bool) -> dict[str, int]:
        """Return how often each computation is reached, from all places that call it.

        Args:
            once: whether each loop counts as one turn.
        """
        counts: dict[str, int] = {}

        def count(name: str) -> int:
            if name not in counts:
                calls = [count(caller) * (1 if once else turns) for caller, turns in self._callers[name]]
                counts[name] = sum(calls) if calls else 1  # nothing calls the entry
            return counts[name]

        return {name: count(name) for name in self._callers}

    @functools.cached_property
    def _callers(self) -> dict[str, list[tuple[str, int]]]:
        """What calls each computation that is reached, and how often each time, in the order of the calls."""
        left = [self._entry] if self._entry in self._computations else []
        callers: dict[str, list[tuple[str, int]]] = {name: [] for name in left}
        while left:
            name = left.pop(0)
            for called, turns in self._called(self._computations[name]):
                if called not in self._computations:
                    continue
                if called not in callers:
                    callers[called] = []
                    left.append(called)
                callers[called].append((name, turns))
        return callers

    def matrix_flops(self, *, once: bool = False) -> int:
        """Return the operations of all matrix products and convolutions of a run, in each turn.

        Args:
            once: whether to count the body of a loop once, as the compiler does.
        """
        return sum(
            times * _flops(each, self._computations[name])
            for name, times in self._reached(once=once).items()
            for each in self._computations[name].instructions.values()
        )

    def _called(self, within: _Computation) -> Iterator[tuple[str, int]]:
        for each in within.instructions.values():
            if each.kind == "while":
                turns = self._turns(each, within) or 1
                yield from ((name, turns) for name in _CALLED.findall(each.text))
            # The end of an asynchronous call is left out: it names the computation again.
            elif each.kind in ("fusion", "call", "conditional", "async-start"):
                yield from ((name, 1) for name in _CALLED.findall(each.text))
                if branches := _BRANCHES.search(each.text):
                    yield from ((name, 1) for name in _OPERAND.findall(branches[1]))

    def _turns(self, loop: _Instruction, within: _Computation) -> int | None:
        """Return the turns of a loop that counts from a constant to a constant; None of another one."""
        if told := _ALSO_TOLD.search(loop.text):
            return int(told[1])
        condition, body = (self._named(key, loop.text) for key in ("condition", "body"))
        if condition is None or body is None or condition.root is None or body.root is None:
            return None
        ends = condition.root
        if ends.kind != "compare" or "direction=LT" not in ends.text or len(ends.operands) != 2:
            return None
        at = _position(ends.operands[0], condition)
        begun = within.instructions.get(loop.operands[0]) if loop.operands else None
        if at is None or begun is None or {begun.kind, body.root.kind} != {"tuple"}:
            return None
        counted = body.instructions.get(body.root.operands[at])
        if counted is None or counted.kind != "add" or _position(counted.operands[0], body) != at:
            return None
        numbers = (
            _constant(begun.operands[at], within),
            _constant(ends.operands[1], condition),
            self._given(counted.operands[1], body, begun, within),
        )
        if None in numbers or not numbers[2] or numbers[2] < 0:
            return None
        first, end, step = (int(each or 0) for each in numbers)
        return max(0, math.ceil((end - first) / step))

    def _given(self, name: str, body: _Computation, begun: _Instruction, within: _Computation) -> int | None:
        """Return a number of a loop's body: a constant there, or one that the loop begins with and keeps."""
        number, at = _constant(name, body), _position(name, body)
        if number is not None or at is None or body.root is None or body.root.operands[at] != name:
            return number
        return _constant(begun.operands[at], within)

    def _named(self, key: str, text: str) -> _Computation | None:
        found = re.search(rf"\b{key}=%?([\w.-]+)", text)
        return self._computations.get(found[1]) if found else None


def _instruction(line: str) -> _Instruction | None:
    named = _NAMED.match(line)
    kind = _KIND.search(line, named.end() - 1) if named else None
    if named is None or kind is None:
        return None
    end = _closed(line, kind.end())
    shapes = _SHAPE.findall(line, named.end(), kind.start())
    return _Instruction(
        name=named["name"],
        kind=kind[1],
        shape=tuple(map(int, filter(None, shapes[0].split(",")))) if len(shapes) == 1 else (),
        size_bytes=size_bytes(line[named.end() : kind.start()]),
        operands=tuple(_OPERAND.findall(line, kind.end(), end)),
        text=line[kind.end() :],
        is_root=bool(named["root"]),
    )


def _closed(line: str, at: int) -> int:
    """Return where the parenthesis closes that was opened before `at`."""
    depth = 1
    for place in range(at, len(line)):
        depth += {"(": 1, ")": -1}.get(line[place], 0)
        if not depth:
            return place
    return len(line)


def _position(name: str, within: _Computation) -> int | None:
    """Return which element of its argument a computation has under a name; None if it is none."""
    each = within.instructions.get(name)
    while each is not None and each.kind in _SAME:
        each = within.instructions.get(each.operands[0])
    if each is None or each.kind != "get-tuple-element":
        return None
    source = within.instructions.get(each.operands[0])
    at = re.search(r"\bindex=(\d+)", each.text)
    return int(at[1]) if at and source is not None and source.kind == "parameter" else None


def _constant(name: str, within: _Computation) -> int | None:
    each = within.instructions.get(name)
    while each is not None and each.kind in _SAME:
        each = within.instructions.get(each.operands[0])
    value = re.match(r"(-?\d+)\)", each.text) if each is not None and each.kind == "constant" else None
    return int(value[1]) if value else None


def _flops(each: _Instruction, within: _Computation) -> int:
    """Return the operations of a matrix product or convolution, as XLA counts them; 0 of all else."""
    if each.kind not in ("dot", "convolution") or len(each.operands) != 2:
        return 0
    left, right = (within.instructions.get(name) for name in each.operands)
    if left is None or right is None:
        return 0
    if each.kind == "dot":
        summed = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", each.text)
        axes = [int(axis) for axis in summed[1].split(",") if axis] if summed else []
        if max(axes, default=-1) >= len(left.shape):  # a shape that is written in a way not known here
            return 0
        return 2 * math.prod(each.shape) * math.prod(left.shape[axis] for axis in axes)
    labels = _LABELS.search(each.text)
    shapes = (left.shape, right.shape, each.shape)
    if labels is None or any(
        len(names) != len(shape) for names, shape in zip(labels.groups(), shapes, strict=True)
    ):
        return 0
    of_left, of_right, of_result = (
        dict(zip(names, shape, strict=True)) for names, shape in zip(labels.groups(), shapes, strict=True)
    )
    groups = {name: int(count) for name, count in _GROUPS.findall(each.text)}
    products: int = 2 * of_left["b"] // groups.get("batch", 1)
    products *= of_left["f"] // groups.get("feature", 1) * of_result["f"]
    for axis, window in enumerate(_windows(each.text, sum(name.isdigit() for name in of_left))):
        products *= _met(of_left[str(axis)], of_right[str(axis)], of_result[str(axis)], **window)
    return products


def _windows(text: str, axes: int) -> Iterator[dict[str, int]]:
    """Yield what is not the default of a convolution's window, axis by axis."""
    window = re.search(r"window=\{([^}]*)\}", text)
    told = dict(each.split("=") for each in window[1].split()) if window else {}
    for axis in range(axes):
        found = {name: told[name].split("x")[axis] for name in told if name != "size"}
        yield {
            "stride": int(found.get("stride", 1)),
            "before": int(found.get("pad", "0_0").split("_")[0]),
            "spread": int(found.get("lhs_dilate", 1)),
            "gap": int(found.get("rhs_dilate", 1)),
        }


@functools.cache
def _met(size: int, width: int, results: int, *, stride: int, before: int, spread: int, gap: int) -> int:
    """Return how often a window meets a value along one axis, and not the padding or a gap between values."""
    last = (size - 1) * spread
    return sum(
        0 <= (place := result * stride + at * gap - before) <= last and place % spread == 0
        for result in range(results)
        for at in range(width)
    )
