"""The interface by which a run in progress reports to the screen or a log."""

from collections.abc import Mapping

from slipway.pipeline.runs.record import NodeRecord, RunRecord


class RunDisplay:
    """Base of displays: receives the reports of a run, and shows nothing."""

    def begins(self, record: RunRecord) -> None:
        """Called when the run has an id, and nothing is imported yet."""

    def planned(self, record: RunRecord, expected_s: Mapping[str, float]) -> None:
        """Called after planning; `expected_s` holds each node's duration in the latest run that ran it."""

    def waiting(self, record: RunRecord, what: str) -> None:
        """Called repeatedly while no node can start yet, for instance while TFX is imported."""

    def changed(self, record: RunRecord, node: NodeRecord) -> None:
        """Called when a node's state has changed."""

    def tick(self, record: RunRecord, progress: Mapping[str, str]) -> None:
        """Called repeatedly; `progress` holds a few words for each running node that reported some."""

    def ends(self, record: RunRecord) -> None:
        """Called when the run is over."""

    def leave_table(self, record: RunRecord) -> int | None:
        """Called instead of `ends` when the run is over and the caller reports the outcome; keeps the table.

        Returns:
            The width of the screen, in columns; None if the width of lines is not limited.
        """

    def close(self) -> None:
        """Called after the last report, also if the run ended in an error."""
