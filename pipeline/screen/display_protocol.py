"""Reports on a run in progress: to the screen, to a log, or to a caller."""

from collections.abc import Mapping
from typing import Protocol

from slipway.pipeline.runs.record import NodeRecord, RunRecord


class Display(Protocol):
    """The engine's reports while it works."""

    def changed(self, record: RunRecord, node: NodeRecord) -> None:
        """A node's state changed."""

    def tick(self, record: RunRecord, progress: Mapping[str, str]) -> None:
        """Time passed; `progress` holds a few words for each running node that reported some."""


class RunDisplay(Display, Protocol):
    """The reports of a run, from the first line to the last."""

    def begins(self, record: RunRecord) -> None:
        """The run has an id; nothing is imported yet."""

    def planned(self, record: RunRecord, expected_s: Mapping[str, float]) -> None:
        """The plan is made; `expected_s` holds each node's time in the latest run that ran it."""

    def waiting(self, record: RunRecord, what: str) -> None:
        """Time passes before nodes can start, e.g. while TFX is imported."""

    def ends(self, record: RunRecord) -> None:
        """The run is over."""

    def close(self) -> None:
        """No more reports follow; also called if the run ended in an error."""
