"""A Resolver strategy that finds the artifacts of one span."""

from typing import Any

from tfx.dsl.components.common.resolver import ResolverStrategy

SPAN = "span"
"""The custom property of a DataVerdict that holds the span of its data; TFX uses the name for Examples."""


class SpanStrategy(ResolverStrategy):  # type: ignore[misc]  # TFX has no types
    """Resolves each channel to its latest artifact of one span.

    Args:
        span: the number of the span, as Ingest finds it in the files' names.
    """

    def __init__(self, span: int) -> None:
        self._span = span

    def resolve_artifacts(
        self,
        store: Any,  # noqa: ARG002 (TFX hands it over; what is resolved is in the channels)
        input_dict: dict[str, list[Any]],
    ) -> dict[str, list[Any]]:
        """Return the artifacts by channel; the list is empty if the channel has none of that span."""
        found = {}
        for name, artifacts in input_dict.items():
            of_span = [each for each in artifacts if each.get_int_custom_property(SPAN) == self._span]
            found[name] = sorted(of_span, key=lambda artifact: artifact.id)[-1:]
        return found
