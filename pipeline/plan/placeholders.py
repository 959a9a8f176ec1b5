"""Finds values from outside the pipeline in a parameter that is an expression. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

_EXECUTION, _ENVIRONMENT = "EXEC_INVOCATION", "ENVIRONMENT_VARIABLE"
# Facts about an execution that are the same in every run.
_CONSTANT = ("pipeline_info", "pipeline_node")


def unforeseen(expression: Mapping[str, object]) -> str:
    """Return the value in an expression that cannot be known before the node runs, in words; empty if none.

    Outputs of other nodes and constants are known from the nodes that made them. An execution's id, its
    run's id and its folders are new in every run, and an environment variable may have changed.

    Args:
        expression: TFX's PlaceholderExpression as plain JSON.
    """
    return next(_unforeseen(expression, ()), "")


def _unforeseen(found: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Yield such values; `path` holds the fields that are read from the inner expression."""
    if isinstance(found, list):
        for item in found:
            yield from _unforeseen(item, path)
    elif isinstance(found, Mapping):
        kind = found.get("type")
        if kind == _ENVIRONMENT:
            yield f"the environment variable {found.get('key', '')}, which may have changed"
        elif kind == _EXECUTION:
            field = path[0].strip(".").partition(".")[0] if path else ""
            if field not in _CONSTANT:
                yield f"{field or 'all'} of the execution, which is new in every run"
        inner = tuple(found.get("protoFieldPath", ())) or path
        for value in found.values():
            yield from _unforeseen(value, inner)
