"""One attempt at a node: the state of its process, and when to end it because it takes too long. Pure."""

import signal
from dataclasses import dataclass

# Time between SIGTERM and SIGKILL, in which a node may save its state.
GRACE_S = 10.0
# A process that was stopped (SIGSTOP, ^Z) and not continued within this time counts as hung.
STOPPED_LIMIT_S = 30.0


@dataclass
class Attempt:
    """One attempt to run a node, and the state of its process.

    All times are seconds of `time.monotonic()`.

    Attributes:
        began: when the process was requested.
        pid: the process id; 0 until the fork server has reported it.
        stopped_since: since when the process has been seen stopped.
        told_to_end: when the process was last signalled to end.
        reason: why it was signalled to end; empty if it was not.
        is_at_fault: True if ending it is the node's own failure; False if it was ended because of something
            else, such as an interrupt.
    """

    began: float
    pid: int = 0
    stopped_since: float | None = None
    told_to_end: float | None = None
    reason: str = ""
    is_at_fault: bool = True

    def end(self, now: float, reason: str, *, is_at_fault: bool = True) -> None:
        """Note that the process was signalled to end; the first reason is kept."""
        if not self.reason:
            self.reason, self.is_at_fault = reason, is_at_fault
        self.told_to_end = now

    def check(self, now: float, *, limit_s: float | None, is_stopped: bool) -> signal.Signals | None:
        """Return the signal to send to the process now: SIGTERM, later SIGKILL, or none.

        Args:
            limit_s: the time limit of the attempt; None for no limit.
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
