"""Summarises the measurements of a training in one line. Pure."""

from dataclasses import dataclass

from slipway.components.counted_words import counted

INPUT_BOUND_SHARE = 0.1
"""The share of time spent waiting from which a training counts as input-bound."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The measurements of a training.

    Attributes:
        step_s: seconds per step; None: too few steps to tell.
        step_waiting_s: seconds per step spent waiting for input; None: not measured.
        constant_batch_step_s: seconds per step on one constant batch; None: not measured.
        batch_size: examples per step.
        useful_s: seconds of the steps that led to the result.
        wall_s: seconds from the start of the first attempt to the end, interruptions included.
        attempts: how often the training was started, >= 1.
        rollbacks: how often the training blew up and went back to a checkpoint.
        input_advice: what would speed up input, e.g. "cache: memory would hold the set in 84 MB"; may be
            empty.
    """

    step_s: float | None
    step_waiting_s: float | None = None
    constant_batch_step_s: float | None = None
    batch_size: int
    useful_s: float
    wall_s: float
    attempts: int = 1
    rollbacks: int = 0
    input_advice: str = ""

    @property
    def waiting_share(self) -> float | None:
        """Share of a step's time that input costs, 0 .. 1; None: not measured.

        From the waiting time if that was measured, else from the comparison with a constant batch, which
        never waits.
        """
        if not self.step_s:
            return None
        waiting_s = self.step_waiting_s
        if waiting_s is None and self.constant_batch_step_s is not None:
            waiting_s = self.step_s - self.constant_batch_step_s
        return None if waiting_s is None else min(max(waiting_s / self.step_s, 0.0), 1.0)

    @property
    def goodput(self) -> float:
        """Share of the wall time spent on steps that led to the result, 0 .. 1."""
        return min(self.useful_s / self.wall_s, 1.0) if self.wall_s > 0 else 0.0


def verdict(measured: Measured) -> str:
    """Return one line: what bounds the steps, how fast they are, and how much of the time was useful."""
    parts = [_bound(measured)]
    if measured.step_s:
        speed = measured.batch_size / measured.step_s
        parts.append(f"{1e3 * measured.step_s:.3g} ms a step, {speed:,.0f} examples/s")
    parts.append(f"goodput {measured.goodput:.0%}{_interruptions(measured)}")
    return "; ".join(parts)


def _bound(measured: Measured) -> str:
    share = measured.waiting_share
    if share is None:
        # Batches of several lengths are compared with no constant one.
        return (
            "not measured what bounds the steps"
            if measured.step_s
            else "too few steps to say what bounds them"
        )
    if share < INPUT_BOUND_SHARE:
        return f"compute-bound: {share:.0%} of the time waiting for input"
    advice = f"; {measured.input_advice}" if measured.input_advice else ""
    return f"input-bound: {share:.0%} of the time waiting{advice}"


def _interruptions(measured: Measured) -> str:
    told = []
    if measured.attempts > 1:
        told.append(counted(measured.attempts - 1, "restart"))
    if measured.rollbacks:
        told.append(counted(measured.rollbacks, "rollback"))
    return f" with {' and '.join(told)}" if told else ""
