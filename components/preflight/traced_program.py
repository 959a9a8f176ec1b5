"""Finds in a traced step (a JAX jaxpr) what the trace fixed and so is the same in every step. Pure.

The jaxpr is read through its attributes only; JAX is not imported.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from slipway.components.preflight.question_and_answer import Trait

LARGE_CONSTANT_BYTES = 32 * 2**20
"""Constants of at least this size are reported: they take memory on each device and are compiled in."""
LONG_LOOP = 1000
"""From this many sequential turns on, the time of a loop depends on the turns, not on its operations."""
CALLBACKS = ("pure_callback", "io_callback", "debug_callback", "debug_print")
"""JAX primitives that call back to the host in the middle of a step."""
_NOISE = ("random_bits", "threefry2x32", "rng_bit_generator")
_ALIKE = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat2")
"""Primitives that pass their operands, one to one, to the inner program."""
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_WRAPPED = re.compile(r"\w+\(([^()]*)\)")
"""A name wrapped by JAX's transformations, such as jvp(name)."""

Where = Callable[[Any], str]
"""Returns the place of an equation in the user's code, in words."""


def leak(closed: Any, arguments: int, where: Where) -> str | None:
    """Return the place where a step uses a tensor of another trace (a leaked tracer); None if it uses none.

    JAX makes such tensors additional inputs, before the arguments. It traces and compiles the step without an
    error, and refuses the call.

    Args:
        closed: a `jax.stages.Traced.jaxpr`.
        arguments: the number of arrays that the step is called with.
        where: returns the place of an equation.
    """
    foreign = closed.jaxpr.invars[: len(closed.jaxpr.invars) - arguments]
    users = [each for each in closed.jaxpr.eqns if any(_is_among(one, each.invars) for one in foreign)]
    return where(users[0]) if users else None


def large_constants(closed: Any, where: Where) -> Iterator[Trait]:
    """Yield a trait for each large array that is part of the program and not one of its inputs.

    Args:
        closed: a `jax.stages.Traced.jaxpr`.
        where: returns the place of an equation.
    """
    for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=False):
        size = getattr(value, "nbytes", 0)
        if size >= LARGE_CONSTANT_BYTES:
            user = next((each for each in closed.jaxpr.eqns if _is_among(variable, each.invars)), None)
            detail = f"{size / 2**20:,.0f} MiB, {value.dtype} {tuple(value.shape)}"
            yield Trait(kind="constant", where=where(user) if user else "", detail=detail)


def constant_noise(closed: Any, where: Where) -> Iterator[Trait]:
    """Yield a trait for random numbers that depend on no input of the step, and so are equal in each step."""
    places = dict.fromkeys(map(where, _constant_noise(closed.jaxpr, [True] * len(closed.jaxpr.invars))))
    yield from (Trait(kind="same_noise", where=place) for place in places)


def long_loops(closed: Any, where: Where) -> Iterator[Trait]:
    """Yield a trait for each loop of many sequential turns."""
    found = {
        where(equation): turns for turns, equation in sorted(_loops(closed.jaxpr, 1), key=lambda e: e[0])
    }
    yield from (
        Trait(kind="long_loop", where=place, detail=f"{turns:,} turns") for place, turns in found.items()
    )


def difference(first: Any, second: Any, where: Where) -> Trait | None:
    """Return a trait for the first difference between two traces of one step; None if they are equal.

    A difference means that Python or NumPy decided something anew in each trace.

    Args:
        first: the first `jax.stages.Traced.jaxpr`.
        second: the second.
        where: returns the place of an equation.
    """
    for one, other in zip(first.jaxpr.eqns, second.jaxpr.eqns, strict=False):
        if _text(one) != _text(other):
            return Trait(kind="each_trace", where=where(other))
    if len(first.jaxpr.eqns) != len(second.jaxpr.eqns) or len(first.consts) != len(second.consts):
        return Trait(kind="each_trace", where="")
    for variable, one, other in zip(second.jaxpr.constvars, first.consts, second.consts, strict=False):
        if hasattr(one, "nbytes") and one is not other and not _is_same(one, other):
            user = next((each for each in second.jaxpr.eqns if _is_among(variable, each.invars)), None)
            return Trait(kind="each_trace", where=where(user) if user else "")
    return None


def callbacks_in(jaxpr: Any, where: Where, caller: str = "") -> Iterator[str]:
    """Yield the calls back to the host in a traced program, each with the place that it comes from.

    Args:
        where: returns the place of an equation.
        caller: the place of those that have none, as in a function of JAX's that is called.
    """
    for equation in jaxpr.eqns:
        place = where(equation) or caller
        if equation.primitive.name in CALLBACKS:
            yield f"{equation.primitive.name}{f' in {place}' if place else ''}"
        for inner in _within(equation):
            yield from callbacks_in(inner, where, place)


def place_of(primitive: str, jaxpr: Any, where: Where, caller: str = "") -> str:
    """Return the place of the first equation of a primitive that has one; "" if none has.

    Args: those of `callbacks_in`.
    """
    for equation in jaxpr.eqns:
        place = where(equation) or caller
        if equation.primitive.name == primitive and place:
            return place
        for inner in _within(equation):
            if found := place_of(primitive, inner, where, place):
                return found
    return ""


def layer_of(name_stack: str, layers: Collection[str]) -> str:
    """Return the innermost layer in a name stack: "jvp(functional)/culprit/normal" is in culprit.

    Args:
        layers: the names of the model's layers; a name stack has names of functions, too.

    Returns:
        The layer's name; "" if there is none.
    """
    plain, wrapped = _WRAPPED.sub(r"\1", name_stack), name_stack
    while plain != wrapped:
        plain, wrapped = _WRAPPED.sub(r"\1", plain), plain
    return next((name for name in reversed(plain.split("/")) if name in layers), "")


def _constant_noise(jaxpr: Any, given: Sequence[bool]) -> Iterator[Any]:
    """Yield the equations that draw random numbers from no input of the step.

    Args:
        given: for each of its inputs, whether it depends on an input of the step.
    """
    known = {id(variable) for variable, is_given in zip(jaxpr.invars, given, strict=False) if is_given}
    for equation in jaxpr.eqns:
        operands = [id(each) in known for each in equation.invars]
        if equation.primitive.name in _NOISE and not any(operands):
            yield equation
        for inner in _within(equation):
            is_alike = equation.primitive.name in _ALIKE and len(inner.invars) == len(operands)
            handed = operands if is_alike else [any(operands)] * len(inner.invars)
            # An equation in a shared function is reported at the place of its caller.
            yield from (equation for _ in _constant_noise(inner, handed))
        if any(operands):
            known.update(map(id, equation.outvars))


def _loops(jaxpr: Any, times: int) -> Iterator[tuple[int, Any]]:
    for equation in jaxpr.eqns:
        turns = times * equation.params["length"] if equation.primitive.name == "scan" else times
        if equation.primitive.name == "scan" and turns >= LONG_LOOP:
            yield turns, equation
        for inner in _within(equation):
            yield from ((most, equation) for most, _ in _loops(inner, turns))


def _within(equation: Any) -> Iterator[Any]:
    for value in equation.params.values():
        for inner in value if isinstance(value, list | tuple) else [value]:
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield inner


def _is_among(variable: Any, others: Sequence[Any]) -> bool:
    return any(each is variable for each in others)


def _text(equation: Any) -> str:
    return _ADDRESS.sub("", str(equation))


def _is_same(one: Any, other: Any) -> bool:
    """Return True if two constants are equal; large ones are assumed to be, as comparing them takes long."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.nbytes >= LARGE_CONSTANT_BYTES:
        return True
    if not isinstance(one.dtype, np.dtype):  # JAX's random keys, which have no NumPy dtype
        return bool((one == other).all())
    return np.asarray(one).tobytes() == np.asarray(other).tobytes()  # NaN does not equal itself
