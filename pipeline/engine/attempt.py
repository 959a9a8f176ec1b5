"""One attempt at a node: its process, and when to end it because it takes too long. Pure."""

import signal
from dataclasses import dataclass

# A node has this long between SIGTERM and SIGKILL, to save what it can.
GRACE_S = 10.0
# A process that someone stopped (SIGSTOP, ^Z) and nobody continued within this time counts as hung.
STOPPED_LIMIT_S = 30.0


@dataclass
class Attempt:
    """A node's process.

    Attributes:
        began: when it was asked for; all times are seconds of `time.monotonic()`.
        pid: its process id; 0 until the fork server has reported it.
        stopped_since: since when it is seen stopped.
        told_to_end: when it was last told to end.
        is_at_fault: whether that is the node's failure; False if it was ended for another's sake.
    """

    began: float
    pid: int = 0
    stopped_since: float | None = None
    told_to_end: float | None = None
    reason: str = ""
    is_at_fault: bool = True

    def end(self, now: float, reason: str, *, is_at_fault: bool = True) -> None:
        """Notes that it was told to end; the first reason is kept."""
        if not self.reason:
            self.reason, self.is_at_fault = reason, is_at_fault
        self.told_to_end = now

    def check(self, now: float, *, limit_s: float | None, is_stopped: bool) -> signal.Signals | None:
        """The signal to send to the process now: SIGTERM, later SIGKILL, or none.

        Args:
            limit_s: how long it may take; None: as long as it wants.
        """
        if self.told_to_end is not None:
            if now - self.told_to_end <= GRACE_S:
                return None
            self.told_to_end = now
            return signal.SIGKILL
        if limit_s is not None and now - self.began > limit_s:
            self.end(now, f"exceeded its time limit of {limit_s:g} s")
            return signal.SIGTERM
        if not is_stopped:
            self.stopped_since = None
            return None
        self.stopped_since = now if self.stopped_since is None else self.stopped_since
        if now - self.stopped_since <= STOPPED_LIMIT_S:
            return None
        self.end(now, f"was stopped (SIGSTOP) for {STOPPED_LIMIT_S:g} s and not continued")
        return signal.SIGKILL
