"""The reports of a run in progress, for the screen, a log or nobody."""

from collections.abc import Mapping

from slipway.pipeline.runs.record import NodeRecord, RunRecord


class RunDisplay:
    """Takes the reports of a run, from the first to the last, and shows nothing."""

    def begins(self, record: RunRecord) -> None:
        """The run has an id; nothing is imported yet."""

    def planned(self, record: RunRecord, expected_s: Mapping[str, float]) -> None:
        """The plan is made; `expected_s` holds each node's time in the latest run that ran it."""

    def waiting(self, record: RunRecord, what: str) -> None:
        """Time passes before nodes can start, e.g. while TFX is imported."""

    def changed(self, record: RunRecord, node: NodeRecord) -> None:
        """A node's state changed."""

    def tick(self, record: RunRecord, progress: Mapping[str, str]) -> None:
        """Time passed; `progress` holds a few words for each running node that reported some."""

    def ends(self, record: RunRecord) -> None:
        """The run is over."""

    def leave_table(self, record: RunRecord) -> int | None:
        """The run is over, and another tells how it ended: the last table stays.

        Returns:
            The width of the screen, in columns; None: lines may be as wide as they come.
        """

    def close(self) -> None:
        """No more reports follow; also called if the run ended in an error."""
