"""What a tracker's module defines, `send`, and the error that it raises."""

from collections.abc import Callable

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


Send = Callable[[RunRecord, str], None]
"""Sends a run that is over to the server at an address. Sending it again is harmless.

It raises a TrackerError if the run was not sent, or only in part, and an OSError or ValueError if a file of
the run cannot be read.
"""
