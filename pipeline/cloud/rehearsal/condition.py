"""Evaluates a task's condition, in the subset of CEL that TFX's compiler writes. Pure.

    condition := and ('||' and)*          and := comparison ('&&' comparison)*
    comparison := sum (('==' | '<' | '>') sum)?    sum := value ('+' value)*
    value := number | 'text' | '!' value | '(' condition ')'
           | inputs.artifacts['KEY'].artifacts[INDEX] ('.uri' | ".metadata['NAME']")

Source: `placeholder_to_cel` in tfx/orchestration/kubeflow/v2/compiler_utils.py; the language is specified
at github.com/google/cel-spec.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.executor_input import RuntimeArtifact

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?)|'([^']*)'|(&&|\|\||==|[<>+!()\[\].])|([A-Za-z_]\w*))")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {"==": operator.eq, "<": operator.lt, ">": operator.gt}


def holds(condition: str, artifacts: Mapping[str, Sequence[RuntimeArtifact]]) -> bool:
    """Return True if a task's condition is met.

    Args:
        condition: CEL, as in `triggerPolicy.condition`.
        artifacts: the task's inputs by key, each with `uri` and `metadata`.

    Raises:
        ComponentError: the condition cannot be parsed, compares values of different types, or names
            something that does not exist.
    """
    result = _Reader(condition, artifacts).read()
    if not isinstance(result, bool):
        raise ComponentError(f"the condition {condition} gives {result!r}, not true or false")
    return result


class _Reader:
    def __init__(self, text: str, artifacts: Mapping[str, Sequence[RuntimeArtifact]]) -> None:
        self._text = text
        self._artifacts = artifacts
        self._tokens = list(self._split())
        self._at = 0

    def read(self) -> Any:
        value = self._either()
        if self._at < len(self._tokens):
            raise self._unreadable()
        return value

    def _split(self) -> list[tuple[str, Any]]:
        tokens: list[tuple[str, Any]] = []
        at = 0
        while at < len(self._text.rstrip()):
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise self._unreadable()
            number, text, sign, name = match.groups()
            if number is not None:
                tokens.append(("value", float(number)))
            elif text is not None:
                tokens.append(("value", text))
            else:
                tokens.append(("sign", sign) if sign else ("name", name))
            at = match.end()
        return tokens

    def _unreadable(self) -> ComponentError:
        return ComponentError(f"the condition {self._text} cannot be evaluated here")

    def _takes(self, token: str) -> bool:
        found = self._at < len(self._tokens) and self._tokens[self._at] == ("sign", token)
        self._at += found
        return found

    def _next(self, kind: str, wanted: str | None = None) -> Any:
        if self._at >= len(self._tokens):
            raise self._unreadable()
        found, value = self._tokens[self._at]
        if found != kind or (wanted is not None and value != wanted):
            raise self._unreadable()
        self._at += 1
        return value

    def _either(self) -> Any:
        value = self._both()
        while self._takes("||"):
            other = self._both()  # parsed even if its value does not matter
            value = value or other
        return value

    def _both(self) -> Any:
        value = self._comparison()
        while self._takes("&&"):
            other = self._comparison()
            value = value and other
        return value

    def _comparison(self) -> Any:
        left = self._sum()
        for sign, compare in _COMPARE.items():
            if self._takes(sign):
                right = self._sum()
                if type(left) is not type(right):
                    raise ComponentError(f"the condition {self._text} compares {left!r} with {right!r}")
                return compare(left, right)
        return left

    def _sum(self) -> Any:
        value = self._value()
        while self._takes("+"):
            other = self._value()
            if type(value) is not type(other):
                raise ComponentError(f"the condition {self._text} adds {other!r} to {value!r}")
            value += other
        return value

    def _value(self) -> Any:
        if self._takes("!"):
            return not self._value()
        if self._takes("("):
            value = self._either()
            self._next("sign", ")")
            return value
        if self._at < len(self._tokens) and self._tokens[self._at][0] == "name":
            return self._artifact()
        return self._next("value")

    def _artifact(self) -> Any:
        for word in ("inputs", "artifacts"):
            self._next("name", word)
            if word == "inputs":
                self._next("sign", ".")
        key = self._index()
        self._next("sign", ".")
        self._next("name", "artifacts")
        index = int(self._index())
        self._next("sign", ".")
        found = self._artifacts.get(key, ())
        if index >= len(found):
            raise ComponentError(f"the condition {self._text} needs the input {key!r}, and there is none")
        if self._next("name") == "uri":
            return found[index]["uri"]
        name = self._index()
        if name not in found[index].get("metadata", {}):
            raise ComponentError(f"the condition {self._text} needs {name!r} of {key!r}, which has none")
        value = found[index]["metadata"][name]
        # The service's numbers are all doubles (google.protobuf.Value).
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    def _index(self) -> Any:
        self._next("sign", "[")
        value = self._next("value")
        self._next("sign", "]")
        return value
