"""Computes when each node ran, and which nodes determined the run's duration (the critical path). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from slipway.pipeline.runs.record import NodeRecord
from slipway.pipeline.screen.wording import DONE_BEFORE


@dataclass(frozen=True)
class Bar:
    """One node that ran.

    Attributes:
        start_s: seconds from the start of this attempt of the run.
        peak_bytes: peak memory of its process; 0 if unknown.
    """

    node_id: str
    state: str
    start_s: float
    wall_s: float
    is_critical: bool
    peak_bytes: int

    @property
    def end_s(self) -> float:
        """The end of the node, in seconds on the same clock as `start_s`."""
        return self.start_s + self.wall_s


@dataclass(frozen=True)
class Timeline:
    """The nodes that ran in this attempt, ordered by start.

    Attributes:
        span_s: seconds from 0 to the end of the last node.
        busy_s: total time of all nodes; more than `span_s` if nodes ran in parallel.
    """

    bars: tuple[Bar, ...]
    span_s: float
    busy_s: float


def timeline(nodes: Sequence[NodeRecord]) -> Timeline:
    """Return the timeline of the nodes that ran in this attempt, without cached and earlier results."""
    ran = [
        n
        for n in nodes
        if n.started_s is not None and n.state in ("complete", "failed") and n.why != DONE_BEFORE
    ]
    critical = critical_path(ran)
    bars = [
        Bar(n.id, n.state, n.started_s or 0.0, n.wall_s, n.id in critical, n.peak_bytes)
        for n in sorted(ran, key=lambda n: n.started_s or 0.0)
    ]
    return Timeline(tuple(bars), max((b.end_s for b in bars), default=0.0), sum(b.wall_s for b in bars))


def critical_path(ran: Sequence[NodeRecord]) -> list[str]:
    """Return the critical path: from the node that ended last, back along the dependency that ended last.

    Speeding up any other node would not have ended the run sooner, as long as nodes do not wait for a free
    worker slot.
    """
    ends = {node.id: (node.started_s or 0.0) + node.wall_s for node in ran}
    by_id = {node.id: node for node in ran}
    path: list[str] = []
    current = max(ends, key=ends.__getitem__, default=None)
    while current is not None:
        path.append(current)
        before = [up for up in by_id[current].upstream if up in ends and up not in path]
        current = max(before, key=ends.__getitem__, default=None)
    return path[::-1]
