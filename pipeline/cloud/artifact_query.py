"""Evaluates a resolver's filter, as TFX's compiler writes it: clauses `a="b"` joined by AND. Pure."""

import re
from collections.abc import Iterator

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.complete_job import title_of
from slipway.pipeline.cloud.executor_input import RuntimeArtifact

_CLAUSE = re.compile(r'(schema_title|state|name|metadata\.(\w+)\.(number|string)_value)=("[^"]*"|[^"\s]+)')
_AND = " AND "


class ArtifactQuery:
    """The filter with which a resolver selects artifacts.

    Args:
        text: the filter, with its placeholders filled in.

    Raises:
        ComponentError: a clause has another form.
    """

    def __init__(self, text: str) -> None:
        self._clauses = list(_clauses(text))

    @property
    def title(self) -> str:
        """The name of the artifact type that the filter selects; empty if it selects any type."""
        return next((str(value) for attribute, _, value in self._clauses if attribute == "schema_title"), "")

    def fits(self, artifact: RuntimeArtifact) -> bool:
        """Return True if the filter selects the artifact."""
        return all(_fits(artifact, *clause) for clause in self._clauses)


def _clauses(text: str) -> Iterator[tuple[str, str, str | float]]:
    """Yield the clauses from left to right; a quoted value may itself contain AND."""
    while True:
        match = _CLAUSE.match(text)
        rest = text[match.end() :] if match else text
        if match is None or not (rest == "" or rest.startswith(_AND)):
            raise _unknown(text)
        yield _clause(match)
        if not rest:
            return
        text = rest.removeprefix(_AND)


def _clause(match: re.Match[str]) -> tuple[str, str, str | float]:
    attribute, name, kind, written = match.groups()
    value = written.strip('"')
    if kind != "number":
        return ("metadata" if name else attribute), name or "", value
    try:
        return "metadata", name, float(value)
    except ValueError:
        raise _unknown(match[0]) from None


def _unknown(text: str) -> ComponentError:
    return ComponentError(f"the resolver's filter {text} cannot be evaluated here")


def _fits(artifact: RuntimeArtifact, attribute: str, name: str, value: str | float) -> bool:
    if attribute == "metadata":
        return artifact["metadata"].get(name) == value
    if attribute == "schema_title":
        return title_of(artifact["type"]) == value
    return attribute == "state" or artifact["name"] == value  # an artifact on disk is always live
