"""Which axis of the mesh divides each dimension of a variable, and what is wrong with that. Pure.

As in a training `keras.distribution.ModelParallel` does it, and `devices.with_jax.require_layout` refuses it.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Axes = tuple[str | None, ...]
NO_PADDING = "pad the weight to a multiple of it (more rows or units), or write null for that dimension"


class Fault(NamedTuple):
    """What is wrong with a layout, and the remedy, in words."""

    words: str
    remedy: str


class WeightLayout:
    """The layout of a model's variables, and of the numbers that its optimizer keeps for them.

    Args:
        layout: `train.layout`: the axis that divides each dimension, by a pattern of the whole path.
        weights: variables of the model; an optimizer's are divided as the one that they belong to.
    """

    def __init__(self, layout: Mapping[str, Axes], weights: Iterable[Any]) -> None:
        self._layout = layout
        # An optimizer names its slots by the path of their variable with "_" for "/". Of two variables whose
        # names begin alike, a slot is of the longer one.
        named = {each.path.replace("/", "_"): each for each in weights}
        self._by_slot = dict(sorted(named.items(), key=lambda item: -len(item[0])))

    def axes(self, variable: Any) -> Axes:
        """Return the mesh axis that divides each dimension of a variable; () if none is divided."""
        patterns = self._patterns(self._owner(variable))
        axes = tuple(self._layout[patterns[0]]) if patterns else ()
        return axes if len(axes) == len(variable.shape) else ()

    def fault(self, variables: Sequence[Any], parts: Mapping[str | None, int]) -> Fault | None:
        """Return the first thing for which a training refuses the layout; None if there is none.

        Args:
            variables: the model's.
            parts: the number of parts that each axis divides a dimension into.
        """
        for each in variables:
            patterns = self._patterns(each)
            if len(patterns) > 1:
                return Fault(
                    f"train.layout: {each.path} matches {' and '.join(map(repr, patterns))}, and Keras takes "
                    "one pattern at most for a variable",
                    "narrower patterns; each matches the whole path",
                )
            if patterns and len(self._layout[patterns[0]]) != len(each.shape):
                return Fault(
                    f"train.layout: {patterns[0]!r} names {len(self._layout[patterns[0]])} dimensions, but "
                    f"{each.path} has {len(each.shape)}: {tuple(each.shape)}",
                    "an axis, or null, for each dimension; a narrower pattern leaves the variable out",
                )
        undivided = [
            f"{each.path} has {size:,} in dimension {at}, which is not a multiple of {parts[axis]}"
            for each in variables
            for at, (size, axis) in enumerate(zip(each.shape, self.axes(each), strict=False))
            if size % parts[axis]
        ]
        return Fault(f"train.layout: {'; '.join(undivided[:3])}", NO_PADDING) if undivided else None

    def _patterns(self, variable: Any) -> list[str]:
        """Return the patterns that match a variable; a path that is written out comes before all patterns."""
        if variable.path in self._layout:
            return [variable.path]
        return [each for each in self._layout if re.fullmatch(each, variable.path)]

    def _owner(self, variable: Any) -> Any:
        name = variable.path.rpartition("/")[2]
        return next(
            (
                each
                for begins, each in self._by_slot.items()
                if name.startswith(f"{begins}_") and tuple(each.shape) == tuple(variable.shape)
            ),
            variable,
        )


def host_without_all(hosts: Sequence[Sequence[int]]) -> int | None:
    """Return a host that has only some of a model's parts, and so could not save it; None if each has all.

    Args:
        hosts: of each copy of the model, the host of each of its parts.
    """
    parts: dict[int, set[int]] = {}
    for copy in hosts:
        for part, host in enumerate(copy):
            parts.setdefault(host, set()).add(part)
    wanted: Collection[int] = range(len(hosts[0]))
    return next((host for host, has in parts.items() if has != set(wanted)), None)
