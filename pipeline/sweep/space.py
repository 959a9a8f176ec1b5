"""The settings that a sweep tries: parses each `--set` as one value, a list of values or a range. Pure."""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from slipway.pipeline.errors import UsageError

Scale = Literal["log", "uniform", "int"]
Params = Mapping[str, str]
"""The values of one trial, in YAML, by key."""

_RANGE = re.compile(r"(log|uniform|int)\((.*)\)")
_DIGITS = 6
_OPEN, _CLOSE, _QUOTES = "[{(", "]})", "\"'"


@dataclass(frozen=True)
class Choice:
    """A key and the values to try, in YAML; at least two, all different."""

    key: str
    values: tuple[str, ...]

    def ends(self) -> tuple[str, ...]:
        """Return the values to check before anything runs: all of them."""
        return self.values

    def takes(self, text: str) -> bool:
        """Return True if a text is one of the values."""
        return text in self.values


@dataclass(frozen=True)
class Range:
    """A key and its range: `log` and `uniform` of real numbers, `int` of whole numbers."""

    key: str
    scale: Scale
    low: float
    high: float

    def ends(self) -> tuple[str, ...]:
        """Return the values to check before anything runs: the two ends."""
        return self.text(self.low), self.text(self.high)

    def takes(self, text: str) -> bool:
        """Return True if a text is a finite number.

        The range is not checked, because numbers are rounded to six digits and may lie just outside it.
        """
        try:
            return math.isfinite(float(text))
        except ValueError:
            return False

    def text(self, value: float) -> str:
        """Format a number of the range in YAML, to six digits."""
        if self.scale == "int":
            return str(round(value))
        text = f"{value:.{_DIGITS}g}"
        # In YAML, 1e-05 is text and 1.0e-05 is a number.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text


@dataclass(frozen=True)
class Space:
    """The search space of a sweep.

    Attributes:
        fixed: the `--set`s with a single value.
        axes: the keys that vary, in the order given; at least one.
    """

    fixed: tuple[str, ...]
    axes: tuple[Choice | Range, ...]

    @property
    def size(self) -> int | None:
        """The number of settings in the grid; None if a range makes it infinite."""
        if any(isinstance(axis, Range) for axis in self.axes):
            return None
        return math.prod(len(axis.values) for axis in self.axes if isinstance(axis, Choice))

    def grid(self) -> Iterator[Params]:
        """Yield all settings of a space of choices; the last key varies fastest."""
        choices = [axis for axis in self.axes if isinstance(axis, Choice)]
        for values in itertools.product(*(axis.values for axis in choices)):
            yield {axis.key: value for axis, value in zip(choices, values, strict=True)}

    def holds(self, params: Params) -> bool:
        """Return True if these settings belong to the space: an allowed value for each key, and no other."""
        return params.keys() == {axis.key for axis in self.axes} and all(
            axis.takes(params[axis.key]) for axis in self.axes
        )

    def sets(self, params: Params) -> tuple[str, ...]:
        """Return the `--set`s of a trial with these values."""
        return (*self.fixed, *(f"{key}={value}" for key, value in params.items()))

    def corners(self) -> Iterator[tuple[str, ...]]:
        """Yield `--set`s that cover each value and each end of a range, to check before anything runs."""
        first = {axis.key: axis.ends()[0] for axis in self.axes}
        yield self.sets(first)
        for axis in self.axes:
            for value in axis.ends()[1:]:
                yield self.sets({**first, axis.key: value})


def read_space(texts: Iterable[str]) -> Space:
    """Parse each `--set KEY=VALUE`.

    VALUE is a single value (`train.epochs=3`), several separated by commas (`train.batch_size=128,256`), or
    a range: `log(1e-4,1e-2)`, `uniform(0,0.5)`, `int(1,8)`. Commas inside brackets or quotes do not separate.

    Raises:
        UsageError: no key varies, a key is given twice, or a range does not have two different ends.
    """
    given: set[str] = set()
    fixed: list[str] = []
    axes: dict[str, Choice | Range] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UsageError(f"--set {text}: must be KEY=VALUE, for example --set train.batch_size=128,256")
        axis = _axis(key, value.strip())
        if key in given:
            raise UsageError(f"--set {key} is given twice.", hint="give all its values in one: KEY=A,B,C")
        given.add(key)
        if isinstance(axis, str):
            fixed.append(f"{key}={axis}")
        else:
            axes[key] = axis
    if not axes:
        raise UsageError(
            "a sweep needs a key that varies; none was given.",
            hint="values, --set train.batch_size=128,256, or a range: log(A,B), uniform(A,B), int(A,B)",
        )
    return Space(tuple(fixed), tuple(axes.values()))


def _axis(key: str, value: str) -> Choice | Range | str:
    """Return the axis, or the single value if there is only one or all are equal."""
    if found := _RANGE.fullmatch(value):
        return _range(key, found[1], _parted(found[2]))
    values = _parted(value)
    if len(values) < 2:
        return value
    if "" in values:
        raise UsageError(f"--set {key}={value}: a value between the commas is missing.")
    different = tuple(dict.fromkeys(values))
    return Choice(key, different) if len(different) > 1 else different[0]


def _range(key: str, scale: str, ends: Sequence[str]) -> Range:
    shown = f"--set {key}={scale}({','.join(ends)})"
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        raise UsageError(f"{shown}: needs two numbers, as {scale}(1,8).") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"{shown}: the first number must be below the second.")
    if scale == "log" and low <= 0:
        raise UsageError(f"{shown}: a logarithmic range begins above 0.", hint="or take uniform(A,B)")
    if scale == "int" and (low != int(low) or high != int(high)):
        raise UsageError(f"{shown}: int takes whole numbers.", hint="or take uniform(A,B)")
    found = Range(key, "log" if scale == "log" else "int" if scale == "int" else "uniform", low, high)
    if found.text(low) == found.text(high):
        raise UsageError(f"{shown}: to {_DIGITS} digits its ends are equal.", hint="take a wider range")
    return found


def _parted(text: str) -> list[str]:
    """Split at commas that are outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in _QUOTES:
            quote = letter
        elif letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += letter
    return [part.strip() for part in parts]
