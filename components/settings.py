"""A setting of a component: default, bounds and description stand once, in a field of its dataclass.

The workload file's model (`slipway.pipeline.config`) is made of these fields: pydantic reads their metadata.
The component itself needs no pydantic for them, which the Python of a training need not have.
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
    """The field of a setting, for a frozen dataclass.

    Args:
        default: of the setting; `dataclasses.MISSING` where it must be given.
        description: a sentence for the user; the workload file's schema shows it.
        rules: further arguments of `pydantic.Field`, such as the bounds `ge`, `gt`, `le` and `lt`.
    """
    metadata = {"description": description, **rules}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def broken_rule(value: Any, setting: Field[Any]) -> str:
    """The rule that a choice or a number breaks, in words that follow it; empty: none."""
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
