"""What a tracker is: it is told of one run, as often as it takes, and says in words why it could not be."""

from collections.abc import Callable
from typing import Protocol

from slipway.pipeline.runs.record import RunRecord


class TrackerError(Exception):
    """A tracker could not be told; in words that hold no address and no credentials.

    Attributes:
        is_away: it cannot be reached at all, so that asking it again at once is of no use.
        is_final: it has taken what it will take; telling it again would change nothing.
    """

    def __init__(self, words: str, *, is_away: bool = False, is_final: bool = False) -> None:
        super().__init__(words)
        self.is_away, self.is_final = is_away, is_final


class Tracker(Protocol):
    """One server that is told of runs."""

    def send(self, record: RunRecord) -> None:
        """Tells of a run that is over. Telling of it twice leaves what telling of it once leaves.

        Raises:
            TrackerError: it was not, or only partly, told.
            OSError, ValueError: a file of the run cannot be read.
        """


Connect = Callable[[RunRecord], Tracker | None]
"""The tracker that the settings of a run's workload name; None if they name none of its kind."""
