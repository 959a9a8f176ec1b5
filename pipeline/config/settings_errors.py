"""Words the errors in a workload's settings: place, key, value, rule and remedy."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from slipway.components.errors import ComponentError
from slipway.components.nearest import nearest
from slipway.components.project import OWN_FOLDER, PROJECT_ROOT
from slipway.pipeline.config.layers import Layer, Layers
from slipway.pipeline.config.safe_yaml import KeyPath, shortened, shown, shown_key
from slipway.pipeline.config.secret_names import hides_value
from slipway.pipeline.config.written_secrets import written_secrets
from slipway.pipeline.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_PROBLEMS = 10
_SCHEMA = "schemas/workload.schema.json"
# Addresses, such as a webhook's, must not be shown, whatever the key.
_ADDRESSES = ("https://", "http://")

# Common names for keys that have another name here.
_OTHER_NAMES = {
    "path": "source",
    "file": "source",
    "files": "source",
    "input": "source",
    "uri": "source",
    "target": "label",
    "steps": "epochs",
    "batch": "batch_size",
}
# A key of another section is suggested only if it is at least this similar.
_ELSEWHERE_SIMILARITY = 0.8

_IN_CODE = re.compile(r"\.py:\d+: ")  # a fault of the user's code, which no key describes
_BEHIND_ALL_LINES = 2**31  # problems without a line in the file come last

_TYPE_WORDS = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list, such as [a, b]",
    "dict_type": "keys with values, such as {key: value}",
    "model_type": "keys with values, such as {key: value}",
    "dataclass_type": "keys with values, such as {key: value}",
}
# Pydantic's error types for an unknown key of a model or of a component's settings.
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_BOUND_WORDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("above", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("below", "lt"),
}


class KeyRuleError(ValueError):
    """A rule that pydantic's types cannot express is broken; `path` leads from the model to the wrong key."""

    def __init__(self, words: str, *path: str | int) -> None:
        super().__init__(words)
        self.path = path


@dataclass(frozen=True, slots=True)
class Problem:
    """One error in the settings: `text` is the line for the user, `line` is the sort key."""

    path: KeyPath
    words: str
    text: str
    line: int


def find_problems(
    model: type[BaseModel], layers: Layers, *, patterns: Mapping[str, str]
) -> list[tuple[Layer, Problem]]:
    """Validate the merged settings, and return each problem with the layer that it was written in.

    Args:
        patterns: each regular expression of the model -> a description that follows "must be".

    Raises:
        ConfigError: a rule of a component's settings is broken; its message names the key.
    """
    try:
        model.model_validate(layers.data)
    except ValidationError as error:
        # Pydantic counts only valid items, so it also reports a list of invalid items as too short.
        details = [
            each for each in error.errors(include_url=False) if not (_is_short(each) and each["input"])
        ]
        details.sort(key=lambda detail: _line_of(detail, layers))
        return [
            _problem(model, layers, detail, patterns, is_shown=index < MAX_PROBLEMS)
            for index, detail in enumerate(details)
        ]
    except ComponentError as error:  # a rule between a component's settings, which pydantic does not catch
        raise ConfigError(error.message, hint=error.hint) from error
    return []


def problem_at(
    path: KeyPath, words: str, layers: Layers, *, first: bool = False, echo: bool = True
) -> tuple[Layer, Problem]:
    """Return a problem with the key at `path`, with its value and the place where it was written last.

    Args:
        words: the rule and the remedy.
        first: name the place where the key, or the key that should contain it, was written first.
    """
    layer, origin = layers.origin(path, first=first)
    is_written = layer.origins.get(path) is origin
    value = layers.value(path)
    shows_value = echo and is_written and _may_be_shown(str(path[-1]), value)
    echoed = _as_written(value, origin.text) if shows_value else ""
    if is_written and origin.is_target:
        where = f"{origin.place}={echoed}" if echoed else origin.place
    else:
        where = f"{origin.place}: {shown_key(path)}" + (f" = {echoed}" if echoed else "")
    return layer, Problem(path, words, f"{where}: {words}", origin.line or _BEHIND_ALL_LINES)


def _may_be_shown(key: str, value: object) -> bool:
    text = str(value).lower().lstrip()
    user, at, _ = text.partition("@")
    has_password = bool(at) and ":" in user
    is_secret = hides_value(key) or text.startswith(_ADDRESSES) or has_password
    return not is_secret and not isinstance(value, dict | list) and not any(written_secrets(value))


def raise_problems(problems: Sequence[Problem], *, name: str) -> None:
    """Raise a ConfigError with one line per problem, in the order of the file, if there are any."""
    lines = list(dict.fromkeys(problem.text for problem in sorted(problems, key=lambda each: each.line)))
    if not lines:
        return
    # A project that was not made by `slipway init` has no copy.
    hint = (
        f"every key is described in {_SCHEMA if (PROJECT_ROOT / _SCHEMA).is_file() else OWN_FOLDER / _SCHEMA}"
    )
    if len(lines) == 1:
        raise ConfigError(lines[0], hint="" if _IN_CODE.search(lines[0]) else hint)
    more = [f"and {len(lines) - MAX_PROBLEMS} more"] if len(lines) > MAX_PROBLEMS else []
    listed = [f"{name}: {len(lines)} problems", *lines[:MAX_PROBLEMS], *more]
    raise ConfigError("\n".join(listed), hint=hint)


def _problem(
    model: type[BaseModel],
    layers: Layers,
    detail: ErrorDetails,
    patterns: Mapping[str, str],
    *,
    is_shown: bool,
) -> tuple[Layer, Problem]:
    kind, path = detail["type"], detail["loc"]
    is_key = path[-1:] == ("[key]",)
    path = path[:-1] if is_key else path
    rule = detail.get("ctx", {}).get("error")
    if kind in _UNKNOWN:
        # Finding the nearest name is expensive, and a problem that is only counted does not need it.
        words = _unknown_key(model, path) if is_shown else "unknown key"
        return problem_at(path, words, layers, echo=False)
    if kind == "missing":
        return problem_at(path, _missing(model, path), layers, first=True)
    if isinstance(rule, KeyRuleError):
        return problem_at((*path, *rule.path), str(rule), layers)
    words = _broken_rule(detail, patterns) + _default(model, path)
    return problem_at(path, f"the key {words}" if is_key else words, layers)


def _line_of(detail: ErrorDetails, layers: Layers) -> int:
    _, origin = layers.origin(detail["loc"], first=detail["type"] == "missing")
    return origin.line or _BEHIND_ALL_LINES


def _is_short(detail: ErrorDetails) -> bool:
    return detail["type"] in ("string_too_short", "too_short")


def _unknown_key(model: type[BaseModel], path: KeyPath) -> str:
    key = str(path[-1])
    parent = _annotation_at(model, path[:-1])
    siblings = list(_fields(parent)) if _is_section(parent) else []
    elsewhere: dict[str, str] = {}
    for dotted in _dotted_keys(model):  # the first of a name, such as train.epochs before tune.epochs
        elsewhere.setdefault(dotted.rpartition(".")[2], dotted)
    other = next((name for name in [_OTHER_NAMES.get(key, "")] if name in siblings), "")
    found = (
        other
        or nearest(key, siblings)
        or elsewhere.get(key)
        or elsewhere.get(nearest(key, elsewhere, similarity=_ELSEWHERE_SIMILARITY), "")
    )
    return f"unknown key; nearest: {found}" if found else f"unknown key; there are: {', '.join(siblings)}"


def _missing(model: type[BaseModel], path: KeyPath) -> str:
    field = _field_at(model, path)
    example = field.examples[0] if field and field.examples else "..."
    if isinstance(example, dict):
        example = "{" + ", ".join(f"{key}: {value}" for key, value in example.items()) + "}"
    return f'missing; add for example "{path[-1]}: {example}"'


def _broken_rule(detail: ErrorDetails, patterns: Mapping[str, str]) -> str:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in _BOUND_WORDS:
        words, bound = _BOUND_WORDS[kind]
        return f"must be {words} {context[bound]}"
    if kind == "string_pattern_mismatch":
        return f"must be {patterns[context['pattern']]}"
    if _is_short(detail):
        return "must not be empty"
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if kind not in _TYPE_WORDS:
        return detail["msg"]
    remedy = ""
    if kind == "string_type" and isinstance(value, bool | int | float):
        remedy = "; put it in quotes"
    if kind == "bool_type" and str(value).lower() in ("yes", "no", "on", "off", "y", "n"):
        remedy = f"; write {'true' if str(value).lower() in ('yes', 'on', 'y') else 'false'}"
    return f"must be {_TYPE_WORDS[kind]}, found {_kind_of(value)}{remedy}"


def _kind_of(value: object) -> str:
    if value is None:
        return "nothing"
    names = {bool: "true or false", str: "text", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "keys with values")


def _default(model: type[BaseModel], path: KeyPath) -> str:
    field = _field_at(model, path)
    known = field is not None and isinstance(field.default, int | float) and not field.json_schema_extra
    return f"; the default is {shown(field.default)}" if field and known else ""


def _as_written(value: object, text: str) -> str:
    """Return a scalar as the user wrote it (`1.10`, not 1.1); text in quotes, to make its ends visible."""
    return shown(value) if isinstance(value, str) or not text else shortened(text)


def _is_section(annotation: Any) -> TypeGuard[type]:
    """Return True if the type is a mapping of known keys: a model, or a component's settings."""
    return isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation))


def _fields(section: type) -> dict[str, FieldInfo]:
    if issubclass(section, BaseModel):
        return {field.alias or name: field for name, field in section.model_fields.items()}
    found: Any = fields(cast("type[DataclassInstance]", section))
    return {each.name: FieldInfo.from_annotated_attribute(each.type, each) for each in found}


def _field_at(model: type[BaseModel], path: KeyPath) -> FieldInfo | None:
    parent = _annotation_at(model, path[:-1])
    return _fields(parent).get(str(path[-1])) if _is_section(parent) else None


def _annotation_at(model: type[BaseModel], path: KeyPath) -> Any:
    """Return the type at a key path: a model, a dict type or a scalar type; None for an unknown key."""
    annotation: Any = model
    for key in path:
        if _is_section(annotation):
            field = _fields(annotation).get(str(key))
            annotation = field.annotation if field else None
        elif get_origin(annotation) is dict:
            annotation = get_args(annotation)[1]
        else:
            return None
        if get_origin(annotation) in (Union, UnionType):  # "X or null": take X
            annotation = next(each for each in get_args(annotation) if each is not type(None))
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
    return annotation


def _dotted_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield every key path of the file that passes through models only, `train.batch_size` and so on."""
    for name in _fields(model):
        yield prefix + name
        inner = _annotation_at(model, (name,))
        if _is_section(inner):
            yield from _dotted_keys(inner, f"{prefix}{name}.")
