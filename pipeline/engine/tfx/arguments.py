"""Builds the arguments for a pipeline function: converts text values to the declared types."""

import functools
import inspect
import operator
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Reversible, Sequence
from pathlib import Path
from types import GenericAlias, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from slipway.pipeline.errors import UsageError

_NONE = ("none", "null")
# Of such types a text is one, too: of its letters.
_OF_ANY_ITEMS = (Collection, Container, Iterable, Reversible)
_CONTAINERS = (list, tuple, dict, Sequence, Mapping)


def arguments(
    function: Callable[..., object], *, name: str, output: Path, values: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments for a pipeline function: those of `--set`, and those that the engine knows.

    The engine knows the arguments that TFX's examples use: `pipeline_name`, `pipeline_root`,
    `metadata_path` and `beam_pipeline_args` (empty; `--beam` adds some).

    Args:
        name: its `module:function`, or the function's own name; the module's last part names the pipeline.
        values: by name; text values are converted to the annotated type, e.g. numbers and booleans.

    Raises:
        UsageError: a value is not of the annotated type, or an argument without a default has none.
    """
    short = name.partition(":")[0].rpartition(".")[2]
    known: dict[str, object] = {
        "pipeline_name": short,
        "pipeline_root": str(output / "artifacts" / short),
        "metadata_path": str(output / "metadata.db"),
        "beam_pipeline_args": [],
    }
    taken: dict[str, object] = {}
    missing = []
    for key, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if key in values:
            value = values[key]
            taken[key] = (
                _typed(key, value, _declared(function, parameter.annotation))
                if isinstance(value, str)
                else value
            )
        elif parameter.default is parameter.empty:
            if key in known:
                taken[key] = known[key]
            else:
                missing.append(key)
    if missing:
        raise UsageError(
            f"{name}: the function needs {', '.join(missing)}.",
            hint="give each with --set NAME=VALUE",
        )
    return taken


def _typed(key: str, text: str, annotation: Any) -> object:
    """Return the value that a text stands for.

    The text itself if no type is declared, or none that text can represent. Lists are JSON, or words
    separated by commas; spaces around them do not count.
    """
    if annotation is inspect.Parameter.empty:
        return text
    try:
        adapter = TypeAdapter(_as_list(annotation), config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # the type has its own pydantic configuration, or is not a type
        return text
    readings: tuple[Callable[[], object], ...] = (
        lambda: adapter.validate_python(text),
        lambda: adapter.validate_json(text),
        lambda: adapter.validate_python(None if text.lower() in _NONE else _words(text)),
    )
    for read in readings:
        try:
            return read()
        except ValidationError:
            continue
    kind = annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
    raise UsageError(f"--set {key}={text}: must be of type {kind}.")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")] if text.strip() else []


def _as_list(annotation: Any) -> Any:
    """Return the type to read a text as: a list where any collection of such items is declared."""
    origin, items = get_origin(annotation) or annotation, get_args(annotation)
    if origin in _OF_ANY_ITEMS:
        return GenericAlias(list, tuple(map(_as_list, items))) if items else list
    if origin is Annotated:  # its first argument is the type
        return Annotated[(_as_list(items[0]), *items[1:])]
    read = tuple(map(_as_list, items))
    if read == items:
        return annotation
    if origin in (Union, UnionType):
        return functools.reduce(operator.or_, read)
    return GenericAlias(origin, read) if origin in _CONTAINERS else annotation


def _declared(function: Callable[..., object], annotation: Any) -> Any:
    """Resolve a type declared as text, e.g. by `from __future__ import annotations`."""
    if not isinstance(annotation, str):
        return annotation
    named = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(named, globalns=getattr(function, "__globals__", {}))["it"]
    except (NameError, TypeError, SyntaxError, AttributeError):  # known only to type checkers
        return inspect.Parameter.empty
