"""A resolver's filter, as TFX's compiler writes it: clauses `a="b"` joined by AND. Pure."""

import re

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.complete_job import title_of
from slipway.pipeline.cloud.execution import RuntimeArtifact

_CLAUSE = re.compile(r'(schema_title|state|name|metadata\.(\w+)\.(number|string)_value)="?([^"]*)"?')


class ArtifactQuery:
    """What a resolver looks for.

    Args:
        text: the filter, with its placeholders filled in.

    Raises:
        ComponentError: a clause of another form.
    """

    def __init__(self, text: str) -> None:
        self._clauses = [_clause(part) for part in text.split(" AND ")]

    @property
    def title(self) -> str:
        """The name of the type that is looked for; empty: any."""
        return next((value for attribute, _, value in self._clauses if attribute == "schema_title"), "")

    def fits(self, artifact: RuntimeArtifact) -> bool:
        """Whether the artifact is one of those."""
        return all(_fits(artifact, *clause) for clause in self._clauses)


def _clause(text: str) -> tuple[str, str, str]:
    match = _CLAUSE.fullmatch(text)
    if match is None:
        raise ComponentError(f"the resolver's filter {text} cannot be evaluated here")
    attribute, name, _, value = match.groups()
    return ("metadata" if name else attribute), name or "", value


def _fits(artifact: RuntimeArtifact, attribute: str, name: str, value: str) -> bool:
    if attribute == "metadata":
        found = artifact["metadata"].get(name)
        return found == value or (isinstance(found, (int, float)) and float(found) == float(value))
    if attribute == "schema_title":
        return title_of(artifact["type"]) == value
    return attribute == "state" or artifact["name"] == value  # whatever is on disk is live
