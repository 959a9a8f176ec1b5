"""JSON that we keep on disk, read back as what was written: of the right types, or refused in words."""

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pipeline.errors import PipelineError

T = TypeVar("T")
_SHOWN_LETTERS = 40


class DocumentError(PipelineError):
    """A document is damaged, or none of ours."""


def read_document(kind: type[T], path: Path) -> T:
    """The content of a JSON file, as `typed` gives it.

    Raises:
        FileNotFoundError: there is none.
        DocumentError: names the file, and what is wrong with it.
    """
    try:
        return typed(kind, json.loads(path.read_bytes()))
    except FileNotFoundError:
        raise
    except OSError as error:
        why = error.strerror
    except (ValueError, RecursionError):
        why = f"its {path.stat().st_size:,} bytes are no whole JSON; it was cut short or changed"
    except PipelineError as error:
        why = error.message
    raise DocumentError(f"{path} cannot be read: {why}")


def typed(kind: type[T], value: Any) -> T:
    """A document as what it says of itself, checked to the last field. Pure.

    Args:
        kind: a dataclass, a TypedDict, a plain type, or what `list`, `dict`, `tuple`, `Literal` and unions
            make of them; `Annotated[type, kind]` is read as that kind. Keys that a dataclass does not know
            are left out: a later version wrote them.
        value: plain data, as JSON gives it.

    Raises:
        DocumentError: names the field that does not fit, its value, and what belongs there.
    """
    return cast(T, _read(kind, value, ""))


def _read(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _read_fields(kind, value, where)
    if is_typeddict(kind):
        return _read_keys(kind, value, where)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Annotated, NotRequired):
        return _read(arguments[-1], value, where)
    if origin in (Union, types.UnionType):
        return _read_union(kind, arguments, value, where)
    if origin is Literal:
        return value if isinstance(value, str) and value in arguments else _refuse(kind, value, where)
    if origin is tuple and Ellipsis not in arguments:
        return _read_each(kind, arguments, value, where)
    if origin in (list, tuple) and isinstance(value, (list, tuple)):
        return origin(_read(arguments[0], each, f"{where}[{place}]") for place, each in enumerate(value))
    if origin in (dict, Mapping) and isinstance(value, dict):
        return {name: _read(arguments[1], each, _below(where, name)) for name, each in value.items()}
    # True is a number for Python alone, and JSON writes 1.0 as 1.
    if (isinstance(value, bool) and kind is not bool) or origin is not None:
        return _refuse(kind, value, where)
    if isinstance(value, kind) or (kind is float and isinstance(value, int)):
        return value
    return _refuse(kind, value, where)


def _read_each(kind: Any, kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, (list, tuple)) or len(value) != len(kinds):
        return _refuse(kind, value, where)
    return tuple(
        _read(each, item, f"{where}[{place}]")
        for place, (each, item) in enumerate(zip(kinds, value, strict=True))
    )


def _read_fields(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        return _refuse(kind, value, where)
    hints = _hints(kind)
    for each in fields(kind):
        if each.name not in value and each.default is MISSING and each.default_factory is MISSING:
            raise DocumentError(f"{_below(where, each.name)} is missing")
    found = {name: _read(hints[name], value[name], _below(where, name)) for name in hints if name in value}
    return kind(**found)


def _read_keys(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        return _refuse(kind, value, where)
    for name in sorted(kind.__required_keys__ - value.keys()):
        raise DocumentError(f"{_below(where, name)} is missing")
    hints = _hints(kind)
    return {n: _read(hints[n], each, _below(where, n)) if n in hints else each for n, each in value.items()}


def _read_union(kind: Any, choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and types.NoneType in choices:
        return None
    rest = [choice for choice in choices if choice is not types.NoneType]
    if len(rest) == 1:  # its own error says more
        return _read(rest[0], value, where)
    for choice in rest:
        try:
            return _read(choice, value, where)
        except DocumentError:
            continue
    return _refuse(kind, value, where)


def _refuse(kind: Any, value: Any, where: str) -> Any:
    text = json.dumps(value)
    shown = text if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]}..."
    raise DocumentError(f"{where or 'the whole'} is {shown}, where {_named(kind)} belongs")


def _named(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    base = get_origin(kind) or kind
    names = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
    names |= {list: "a list", tuple: "a list"}
    return names.get(
        base,
        "a mapping" if base in (dict, Mapping) or is_dataclass(base) or is_typeddict(base) else str(kind),
    )


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
