"""Evaluates a task's condition, in the subset of CEL that TFX's compiler writes. Pure.

    value := number | 'text' | inputs.artifacts['KEY'].artifacts[INDEX] ('.uri' | ".metadata['NAME']")

joined by `||`, `&&`, `==`, `<`, `>`, `+`, `!` and brackets, whose order Python's parser knows.

Source: `placeholder_to_cel` in tfx/orchestration/kubeflow/v2/compiler_utils.py; the language is specified
at github.com/google/cel-spec.
"""

import ast
import operator
import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.executor_input import RuntimeArtifact

# What Python writes otherwise, and its own words for the signs.
_OTHER_THAN_PYTHON = re.compile(
    r"inputs\.artifacts\['(?P<key>[^']*)'\]\.artifacts\[(?P<index>\d+)\]\.(?:uri|metadata\['(?P<name>[^']*)'\])"
    r"|'(?P<text>[^']*)'|(?P<sign>&&|\|\||!)|\b(?:and|or|_\w*)\b|#|\d_"
)
_SIGNS = {"&&": " and ", "||": " or ", "!": "~"}  # `~` binds as closely as CEL's `!`
_COMPARE = {ast.Eq: operator.eq, ast.Lt: operator.lt, ast.Gt: operator.gt}


def holds(condition: str, artifacts: Mapping[str, Sequence[RuntimeArtifact]]) -> bool:
    """Return True if a task's condition is met.

    Args:
        condition: CEL, as in `triggerPolicy.condition`.
        artifacts: the task's inputs by key, each with `uri` and `metadata`.

    Raises:
        ComponentError: the condition cannot be parsed, compares values of different types, or names
            something that does not exist.
    """
    values: list[Any] = []  # of texts and artifacts, which get the names _0, _1 and so on

    def as_python(match: re.Match[str]) -> str:
        if match["sign"]:
            return _SIGNS[match["sign"]]
        if match["text"] is None and match["key"] is None:
            raise SyntaxError(match[0])
        values.append(_looked_up(match, artifacts) if match["text"] is None else match["text"])
        return f" _{len(values) - 1} "

    try:
        result = _evaluated(
            ast.parse(_OTHER_THAN_PYTHON.sub(as_python, condition).strip(), mode="eval").body, values
        )
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise ComponentError(f"the condition {condition} cannot be evaluated here") from error
    except LookupError as error:
        raise ComponentError(f"the condition {condition} needs {error.args[0]}") from error
    except TypeError as error:
        raise ComponentError(f"the condition {condition} {error}") from error
    if not isinstance(result, bool):
        raise ComponentError(f"the condition {condition} gives {result!r}, not true or false")
    return result


def _looked_up(match: re.Match[str], artifacts: Mapping[str, Sequence[RuntimeArtifact]]) -> Any:
    key, name, found = match["key"], match["name"], artifacts.get(match["key"], ())
    if int(match["index"]) >= len(found):
        raise LookupError(f"the input {key!r}, and there is none")
    artifact = found[int(match["index"])]
    if name is None:
        return artifact["uri"]
    if name not in artifact.get("metadata", {}):
        raise LookupError(f"{name!r} of {key!r}, which has none")
    value = artifact["metadata"][name]
    # The service's numbers are all doubles (google.protobuf.Value).
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _evaluated(node: ast.expr, values: Sequence[Any]) -> Any:
    def both(first: ast.expr, second: ast.expr, wrong: str) -> tuple[Any, Any]:
        left, right = _evaluated(first, values), _evaluated(second, values)
        if type(left) is not type(right):
            raise TypeError(wrong.format(left, right))
        return left, right

    match node:
        case ast.BoolOp(op=op, values=parts):  # each is evaluated, even if its value does not matter
            found = [_evaluated(part, values) for part in parts]
            return reduce(lambda a, b: a or b if isinstance(op, ast.Or) else a and b, found)
        case ast.UnaryOp(op=ast.Invert(), operand=part):
            return not _evaluated(part, values)
        case ast.Compare(left=first, ops=[sign], comparators=[second]) if type(sign) in _COMPARE:
            return _COMPARE[type(sign)](*both(first, second, "compares {0!r} with {1!r}"))
        case ast.BinOp(left=first, op=ast.Add(), right=second):
            return operator.add(*both(first, second, "adds {1!r} to {0!r}"))
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name.startswith("_"):
            return values[int(name[1:])]
    raise SyntaxError
