"""Defines the settings of components: a dataclass field holds a setting's default, bounds and description.

The model of the workload file (`slipway.pipeline.config`) is built from these fields, whose metadata pydantic
reads. Components do not import pydantic, which the Python environment of a training may lack.
"""

import operator
from dataclasses import Field, field
from types import NoneType
from typing import Any, Literal, get_args, get_origin

_NUMBERS = {int: "a whole number", float: "a number"}
_BOUNDS = {
    "ge": (">=", operator.ge),
    "gt": (">", operator.gt),
    "le": ("<=", operator.le),
    "lt": ("<", operator.lt),
}


def setting(default: Any, description: str, **rules: Any) -> Any:
    """Return a dataclass field for a setting; the dataclass should be frozen.

    Args:
        default: the setting's default; `dataclasses.MISSING` if a value is required.
        description: a sentence for the user, which the workload file's schema shows.
        rules: further arguments of `pydantic.Field`, such as the bounds `ge`, `gt`, `le` and `lt`.
    """
    metadata = {"description": description, **rules}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def broken_rule(value: Any, setting: Field[Any]) -> str:
    """Return the rule that a choice or a number breaks, worded to follow the value; "" if it breaks none."""
    kinds = get_args(setting.type)
    if value is None and NoneType in kinds:
        return ""
    kind: Any = kinds[0] if NoneType in kinds else setting.type
    if get_origin(kind) is Literal and value not in get_args(kind):
        return f"is none of {', '.join(get_args(kind))}"
    if kind not in _NUMBERS:
        return ""
    bounds = [(*_BOUNDS[key], bound) for key, bound in setting.metadata.items() if key in _BOUNDS]
    # True and False are not numbers here.
    is_number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    if is_number and all(holds(value, bound) for _, holds, bound in bounds):
        return ""
    return f"must be {_NUMBERS[kind]} {' and '.join(f'{sign} {bound}' for sign, _, bound in bounds)}".rstrip()
