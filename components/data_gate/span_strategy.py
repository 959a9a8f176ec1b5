"""A Resolver strategy that finds the artifacts of one span. Imports TFX."""

from typing import Any

from tfx.dsl.components.common.resolver import ResolverStrategy

SPAN = "span"
"""The property of a DataVerdict that holds the span of its data; TFX's name for it on examples."""


class SpanStrategy(ResolverStrategy):  # type: ignore[misc]  # TFX has no types
    """Resolves the latest artifact of a span in each channel.

    Args:
        span: the number that Ingest found in the files' names.
    """

    def __init__(self, span: int) -> None:
        self._span = span

    def resolve_artifacts(
        self,
        store: Any,  # noqa: ARG002 (TFX hands it over; what is resolved is in the channels)
        input_dict: dict[str, list[Any]],
    ) -> dict[str, list[Any]]:
        """Return the artifacts by channel; an empty list if that span was never seen."""
        found = {}
        for name, artifacts in input_dict.items():
            of_span = [each for each in artifacts if each.get_int_custom_property(SPAN) == self._span]
            found[name] = sorted(of_span, key=lambda artifact: artifact.id)[-1:]
        return found
