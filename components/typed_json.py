"""Reads plain data, as of JSON, back into the types it was written from, or says what does not fit. Pure."""

import contextlib
import itertools
import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Self,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from slipway.components.errors import ComponentError

T = TypeVar("T")
_Reader = Callable[[Any], Any]
_SHOWN_LETTERS = 40


class MisfitError(ComponentError):
    """A value that does not fit, and its place; each enclosing reader adds to the place."""

    def __init__(self, words: str, place: str = "") -> None:
        super().__init__(f"{place or 'the whole'} {words}")
        self.words = words
        self.place = place

    def inside(self, place: str) -> Self:
        """Return the same error, as seen from one level further out."""
        between = "." if self.place and self.place[0] != "[" else ""
        return type(self)(self.words, f"{place}{between}{self.place}")


def typed(kind: type[T], value: Any) -> T:
    """Read plain data as the given type, checking every field. Pure.

    Args:
        kind: a dataclass, a TypedDict, a plain type, or a `list`, `dict`, `tuple`, `Literal` or union of
            these; a `Sequence` is read as a list, `Annotated[type, kind]` as `kind`. Keys that a dataclass
            does not know are ignored: a later version wrote them. Of a union's dataclasses, the first one
            whose required keys are present is used. If a dataclass has `from_document`, it first converts
            the keys to the fields' names.

    Raises:
        MisfitError: names the field that does not fit, its value, and the expected type.
    """
    return cast(T, _reader(cast(Any, kind))(value))


def fits(kind: Any, value: Any) -> bool:
    """Return True if plain data can be read as the given type, see `typed`. Pure."""
    try:
        _reader(kind)(value)
    except (MisfitError, RecursionError):  # the error's words hold the value
        return False
    return True


def _misfit(kind: Any, value: Any) -> MisfitError:
    text = json.dumps(value, default=repr)  # a value of Python may be none of JSON
    shown = text if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]}..."
    return MisfitError(f"is {shown}, where {_named(kind)} belongs")


@cache
def _reader(kind: Any) -> _Reader:
    """Return a reader for values of that kind. Cached, because a history holds thousands of records."""
    if kind in (Any, object):
        return _as_it_is
    if is_dataclass(kind):
        from_document = getattr(kind, "from_document", _as_it_is)
        fields_of = _mapping_reader(kind, _field_readers(kind), needed=_needed(kind))
        made = cast(Callable[..., Any], kind)
        return lambda value: made(**fields_of(from_document(value) if isinstance(value, dict) else value))
    if is_typeddict(kind):
        needed = sorted(kind.__required_keys__)
        return _mapping_reader(kind, _field_readers(kind), needed=needed, others=_as_it_is)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Annotated, NotRequired):
        return _reader(arguments[-1])
    if origin in (Union, types.UnionType):
        return _union_reader(kind, arguments)
    if origin is Literal:
        return _plain_reader(kind, lambda value: isinstance(value, str) and value in arguments)
    if origin in (list, tuple, Sequence):
        make = tuple if origin is tuple else list
        each = [_reader(argument) for argument in arguments if argument is not Ellipsis]
        has_length = origin is tuple and Ellipsis not in arguments
        return _list_reader(kind, make, each, has_length=has_length)
    if origin in (dict, Mapping):
        return _mapping_reader(kind, {}, others=_reader(arguments[1]))
    if kind is Path:
        text = _reader(str)
        return lambda value: Path(text(value))
    # Compare exact types: in Python, True is an int. A float may be written as an int in JSON.
    fits: tuple[type, ...] = (float, int) if kind is float else (kind,)
    return _plain_reader(kind, lambda value: type(value) in fits)


def _as_it_is(value: Any) -> Any:
    return value


def _plain_reader(kind: Any, fits: Callable[[Any], bool]) -> _Reader:
    def read(value: Any) -> Any:
        if fits(value):
            return value
        raise _misfit(kind, value)

    return read


def _field_readers(kind: Any) -> dict[str, _Reader]:
    return {name: _reader(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}


def _needed(kind: Any) -> list[str]:
    return [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]


def _mapping_reader(
    kind: Any, readers: Mapping[str, _Reader], *, needed: Sequence[str] = (), others: _Reader | None = None
) -> _Reader:
    """Return a reader for mappings.

    Args:
        readers: by key.
        others: for keys that are not in `readers`; None: these are left out.
    """

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _misfit(kind, value)
        for name in needed:
            if name not in value:
                raise MisfitError("is missing", name)
        found = {}
        for name, each in value.items():
            reader = readers.get(name, others)
            if reader is not None:
                try:
                    found[name] = reader(each)
                except MisfitError as error:
                    raise error.inside(name) from None
        return found

    return read


def _list_reader(
    kind: Any, make: Callable[[list[Any]], Any], readers: Sequence[_Reader], *, has_length: bool
) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, (list, tuple)) or (has_length and len(value) != len(readers)):
            raise _misfit(kind, value)
        found = []
        for place, (each, reader) in enumerate(zip(value, itertools.cycle(readers), strict=False)):
            try:
                found.append(reader(each))
            except MisfitError as error:
                raise error.inside(f"[{place}]") from None
        return make(found)

    return read


def _union_reader(kind: Any, choices: Sequence[Any]) -> _Reader:
    readers = [_reader(choice) for choice in choices if choice is not types.NoneType]
    may_be_none = len(readers) < len(choices)
    dataclasses = [cast(Any, choice) for choice in choices if is_dataclass(choice)]
    told_apart = [({*_needed(choice)}, _reader(choice)) for choice in dataclasses]

    def read(value: Any) -> Any:
        if value is None and may_be_none:
            return None
        if len(readers) == 1:  # the reader's own error is more precise
            return readers[0](value)
        for needed, reader in told_apart:
            if isinstance(value, dict) and needed <= value.keys():
                return reader(value)
        for reader in readers:
            with contextlib.suppress(MisfitError):
                return reader(value)
        raise _misfit(kind, value)

    return read


def _named(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    base = get_origin(kind) or kind
    names = {str: "text", Path: "text", bool: "true or false", int: "a whole number", float: "a number"}
    names |= dict.fromkeys((list, tuple, Sequence), "a list")
    is_mapping = base in (dict, Mapping) or is_dataclass(base) or is_typeddict(base)
    return names.get(base, "a mapping" if is_mapping else str(kind))
