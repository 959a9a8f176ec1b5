"""When each node ran, and which nodes determined the run's length. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from slipway.pipeline.runs.record import NodeRecord
from slipway.pipeline.screen.wording import DONE_BEFORE


@dataclass(frozen=True)
class Bar:
    """One node that ran.

    Attributes:
        start_s: seconds since the first node could start.
        is_critical: whether the end of the run hung on it.
        peak_bytes: the most memory its process held; 0 if unknown.
    """

    node_id: str
    state: str
    start_s: float
    wall_s: float
    is_critical: bool
    peak_bytes: int

    @property
    def end_s(self) -> float:
        """The end of the node."""
        return self.start_s + self.wall_s


@dataclass(frozen=True)
class Timeline:
    """The nodes that ran in this attempt, by their start.

    Attributes:
        span_s: from 0 to the end of the last one.
        busy_s: the times of all nodes together; more than `span_s` where they ran side by side.
    """

    bars: tuple[Bar, ...]
    span_s: float
    busy_s: float


def timeline(nodes: Sequence[NodeRecord]) -> Timeline:
    """The times of the nodes; those from the cache, or done before a resume, took no time in this attempt."""
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
    """The nodes from the last one to end back to the first: each time the dependency that ended last.

    Making any other node faster would not have ended the run sooner, as long as there are free places.
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
