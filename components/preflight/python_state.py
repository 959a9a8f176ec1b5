"""Finds what the user's Python objects keep from one trace of a step to the next.

Those are the layers, losses, metrics, optimizer and schedule of classes of their own, with the attributes
that their code names, functions of their own with the variables around them, and their modules' globals.

What an object is, is asked of its type, and what it holds, of the builtin class that it inherits: a table
that answers every attribute, a lazy proxy, or a class that compares element by element may say anything, or
raise.
"""

import dis
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from unittest import mock

import keras
import numpy as np

from slipway.components.preflight.question_and_answer import Trait
from slipway.components.trainer.trace_error import layer_and_line
from slipway.components.trainer.user_model import own_line

MOST_VALUES = 100_000
"""Containers and arrays of more values are not compared."""
DEEPEST = 100
"""Containers within more others are not compared; one that holds itself is none."""
_PLAIN: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None))
_KINDS = (
    (keras.Model, "the model"),
    (keras.layers.Layer, "the layer"),
    (keras.losses.Loss, "the loss"),
    (keras.metrics.Metric, "the metric"),
    (keras.optimizers.Optimizer, "the optimizer"),
)
_SEEDED = (
    *((np.random, name) for name in ("default_rng", "seed", "RandomState")),
    *((np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")),
    (random, "seed"),
    (random, "Random"),
    (keras.utils, "set_random_seed"),
)
"""What takes a seed of random numbers that are drawn on the host."""
_EMPTY = CellType()
_PREPARING = ("__init__", "build", "get_config")
"""Methods that set what a step then changes, or only tell it."""
_CHANGING = {"STORE_SUBSCR", "POP_TOP"}
"""Instructions that set an item, or leave what a call returned."""


def kept_values(model: Any, dotted_path: str) -> dict[tuple[str, str], object]:
    """Return the plain values that the user's objects hold, by object and name.

    Args:
        model: a built and compiled model.
        dotted_path: the dotted path of `build_model`.
    """
    return {
        (owner.words, name): _frozen(value)
        for owner in _owners(model, dotted_path)
        for name, value in owner.values.items()
        if _is_plain(value)
    }


def side_effects(before: dict[tuple[str, str], object], model: Any, dotted_path: str) -> Iterator[Trait]:
    """Yield a trait for each of the values of `kept_values` that another trace has changed."""
    after = kept_values(model, dotted_path)
    for owner in _owners(model, dotted_path):
        for name in owner.values:
            key = owner.words, name
            if key in before and key in after and before[key] != after[key]:
                yield Trait(kind="side_effect", where=owner.place(name, dotted_path), detail=name)


def leaked_tracers(model: Any, dotted_path: str) -> Iterator[Trait]:
    """Yield a trait for each name under which the user's objects still hold tensors of a finished trace."""
    for owner in _owners(model, dotted_path):
        for name, value in owner.values.items():
            if any(map(_is_tracer, _leaves(value))):
                yield Trait(kind="leaked_tracer", where=owner.place(name, dotted_path), detail=name)


@contextmanager
def fixed_seeds(found: list[tuple[str, str]], dotted_path: str) -> Iterator[None]:
    """Collect where the user's code seeds NumPy's or Python's random numbers, and with what.

    Args:
        found: the list to which the places and the seeds are added, in words.
    """

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def seeding(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            is_own = own_line([(caller.f_code.co_filename, caller.f_lineno)], dotted_path)
            if is_own and any(each is not None for each in (*args, *kwargs.values())):
                found.append((layer_and_line(caller, dotted_path), repr((args, kwargs))))
            return function(*args, **kwargs)

        return seeding

    with ExitStack() as patched:
        for owner, name in _SEEDED:
            function = getattr(owner, name)
            instead = watched(function)
            if _is(function, type):
                instead = _standing_in(function, instead)
            patched.enter_context(mock.patch.object(owner, name, instead))
            for module in _own_modules(dotted_path):
                for alias, value in list(vars(module).items()):
                    if value is function:
                        patched.enter_context(mock.patch.object(module, alias, instead))
        yield


def _standing_in(kind: type, make: Callable[..., Any]) -> type:
    """Return a class for `kind`, whose instances are those of `kind`, and are made by a function."""
    behaviour = {
        "__call__": staticmethod(make),  # called by the user's own line, which `make` looks for
        "__instancecheck__": lambda _, value: isinstance(value, kind),
        "__subclasscheck__": lambda _, other: issubclass(other, kind),
    }
    made: type = type("StandingIn", (type(kind),), behaviour)(kind.__name__, (kind,), {})
    return made


class _Owner(NamedTuple):
    """One of the user's objects.

    Attributes:
        words: say which.
        values: that it holds, by name.
        code: that can change them.
    """

    words: str
    values: Mapping[str, object]
    code: list[CodeType]

    def place(self, name: str, dotted_path: str) -> str:
        """Return the words, with the line that changes a value, or uses it if none seems to."""
        uses = [use for code in self.code for use in _uses(name, code)]
        line = own_line([min(uses)[1:]], dotted_path) if uses else ""
        return f"{self.words}, {line}" if line else self.words


def _uses(name: str, code: CodeType) -> Iterator[tuple[int, str, int]]:
    """Yield the lines of code that use a name: a rank, which is lowest where the value is changed, and the
    file and number of the line."""
    lines: dict[int, list[dis.Instruction]] = {}
    for each in dis.get_instructions(code):
        if each.positions and each.positions.lineno:
            lines.setdefault(each.positions.lineno, []).append(each)
    for number, instructions in lines.items():
        used = {each.opname for each in instructions if each.argval == name}
        if not used:
            continue
        does = {each.opname for each in instructions}
        # An item that is set, or a call for its effect alone, such as self.kept.append(values).
        rank = 0 if any(each.startswith("STORE_") for each in used) else 2 - bool(does & _CHANGING)
        yield rank + 3 * (code.co_name in _PREPARING), code.co_filename, number
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _uses(name, each)


def _owners(model: Any, dotted_path: str) -> Iterator[_Owner]:
    """Yield the user's objects."""
    # Keras holds those of model.compile in one metric, and a function in one of its own.
    metrics = [each for one in model.metrics for each in (one, *getattr(one, "metrics", ()))]
    objects = [*model._flatten_layers(), *keras.tree.flatten(getattr(model, "loss", None)), *metrics]
    objects += [getattr(each, "_fn", None) for each in metrics]
    optimizer = getattr(model, "optimizer", None)
    objects += [optimizer, getattr(optimizer, "_learning_rate", None)]
    for each in {id(each): each for each in objects}.values():
        if _is(each, FunctionType):
            if not str(each.__module__).startswith("keras."):
                yield _Owner(f"the function {each.__name__!r}", _around(each), [each.__code__])
        elif not type(each).__module__.startswith(("keras.", "builtins")):
            own = _names_of(type(each))
            kinds = [kind for kind in type(each).__mro__ if not _is_foreign(kind)]
            values = _attributes(each)
            named = {name: value for name, value in values.items() if not name.startswith("_") or name in own}
            yield _Owner(_named(each), named, [code for kind in kinds for code in _code_of(kind)])
    for module in _own_modules(dotted_path):
        values = _attributes(module)
        named = {name: value for name, value in values.items() if not name.startswith("__")}
        defined = [each for each in named.values() if _is(each, FunctionType, type)]
        owned = [each for each in defined if each.__module__ == values["__name__"]]
        yield _Owner(
            f"the module {values['__name__']}", named, [code for each in owned for code in _code_of(each)]
        )


def _own_modules(dotted_path: str) -> list[ModuleType]:
    """Return the loaded modules of the user's code, as `own_line` knows it."""
    modules = [each for each in list(sys.modules.values()) if _is(each, ModuleType)]
    top = dotted_path.partition(".")[0]
    named = [each for each in modules if str(_attributes(each).get("__name__")).partition(".")[0] == top]
    return [
        each for each in named if own_line([(str(_attributes(each).get("__file__") or ""), 1)], dotted_path)
    ]


def _is(value: object, *kinds: type) -> bool:
    """Return True if a value is of one of the classes; `isinstance` would ask the value itself, too."""
    return issubclass(type(value), kinds)


def _attributes(owner: object) -> dict[str, object]:
    """Return the attributes that an object or a module holds itself; {} if it holds none."""
    try:
        held = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return dict(held)


def _around(function: Any) -> dict[str, object]:
    """Return the values of the variables of other functions that a function uses."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if cell != _EMPTY}


def _names_of(kind: type) -> set[str]:
    """Return the names that the code of the user's own classes uses, and that of Keras' does not.

    Keras' classes keep what is theirs under names that begin with "_"; so may the user.
    """
    own: set[str] = set()
    others: set[str] = set()
    for each in kind.__mro__:
        names = others if _is_foreign(each) else own
        names |= {name for code in _code_of(each) for name in _names_in(code)}
    return own - others


def _is_foreign(kind: type) -> bool:
    return kind.__module__.startswith(("keras.", "tensorflow."))


def _code_of(owner: Any) -> Iterator[CodeType]:
    """Yield the code of a function, or of the methods of a class."""
    for value in vars(owner).values() if _is(owner, type) else [owner]:
        function = value.fget if _is(value, property) else value
        function = function.__func__ if _is(function, classmethod, staticmethod, MethodType) else function
        while _is(function, FunctionType) and _is(vars(function).get("__wrapped__"), FunctionType):
            function = function.__wrapped__
        if _is(function, FunctionType):
            yield function.__code__


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names_in(each)


def _named(each: Any) -> str:
    kind = next((words for base, words in _KINDS if _is(each, base)), "the schedule")
    name = _attributes(each).get("name") or type(each).__name__
    return f"{kind} {name!r} ({type(each).__name__})"


def _is_plain(value: Any, around: tuple[int, ...] = ()) -> bool:
    """Return True if a value can be compared.

    Args:
        around: the `id` of each container that it is in.
    """
    held = _held(value)
    if held is not None:
        is_finite = len(around) < DEEPEST and id(value) not in around and len(held) < MOST_VALUES
        return is_finite and all(_is_plain(each, (*around, id(value))) for each in held)
    if _is(value, np.ndarray):
        return bool(value.size < MOST_VALUES and not value.dtype.hasobject)
    return _is(value, *_PLAIN, np.generic)


def _frozen(value: Any) -> object:
    """Return what stands for a plain value in comparisons: equal for NaN, too, and made of builtins alone."""
    if _is(value, dict):
        items = dict.items(value)
        return tuple((_frozen(key) if _is_plain(key) else id(key), _frozen(each)) for key, each in items)
    held = _held(value)
    if held is not None:
        frozen = map(_frozen, held)
        return frozenset(frozen) if _is(value, set) else tuple(frozen)
    if _is(value, np.ndarray):
        return (value.shape, np.ndarray.tobytes(value))
    if _is(value, np.generic):
        return (value.dtype.str, value.tobytes())
    base: Any = next(each for each in _PLAIN if _is(value, each))
    return (base.__name__, base.__repr__(value))


def _held(value: Any) -> list[Any] | None:
    """Return what a container holds, a dictionary's values; None of what is no container."""
    if _is(value, dict):
        return list(dict.values(value))
    base = next((each for each in (list, tuple, set) if _is(value, each)), None)
    return None if base is None else list(base.__iter__(value))


def _leaves(value: Any) -> Iterator[Any]:
    left, seen = [value], set()
    while left:
        each = left.pop()
        held = _held(each)
        if held is None:
            yield each
        elif id(each) not in seen:  # a container may hold itself
            seen.add(id(each))
            left += held


def _is_tracer(value: object) -> bool:
    return any(base.__name__ == "Tracer" for base in type(value).__mro__)
