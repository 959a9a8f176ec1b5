"""The interface of trackers: they receive one run at a time, and sending a run again is harmless."""

from collections.abc import Callable
from typing import Protocol

from slipway.pipeline.runs.record import RunRecord


class TrackerError(Exception):
    """A run could not be sent to a tracker; the message holds no address and no credentials.

    Attributes:
        is_away: the tracker cannot be reached at all, so there is no point in trying again at once.
        is_final: the tracker has accepted all that it will accept, so sending again would change nothing.
    """

    def __init__(self, words: str, *, is_away: bool = False, is_final: bool = False) -> None:
        super().__init__(words)
        self.is_away, self.is_final = is_away, is_final


class Tracker(Protocol):
    """A server that runs are sent to."""

    def send(self, record: RunRecord) -> None:
        """Send a run that is over. This is idempotent.

        Raises:
            TrackerError: the run was not sent, or only in part.
            OSError, ValueError: a file of the run cannot be read.
        """


Connect = Callable[[RunRecord], Tracker | None]
"""Returns the tracker that the settings of a run's workload name; None if they name none of this kind."""
