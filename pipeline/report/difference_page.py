"""The page of the differences between two runs: only the changes, old beside new. Pure."""

from dataclasses import dataclass

from slipway.pipeline.report.index import MARK_OF
from slipway.pipeline.report.page_head import is_better, one_line
from slipway.pipeline.runs.diff import SECTIONS, Change, Difference
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import MARKS
from slipway.pipeline.terminal.durations import seconds

_SHOWN_CHANGES = 200
_VALUE_LENGTH = 300
_TITLES = {
    "outcome": "What came of it",
    "metrics": "Metrics",
    "parameters": "Parameters",
    "code": "Code",
    "data": "Data",
    "schema": "Schema",
    "baseline": "Baseline",
    "stack": "Packages",
    "nodes": "Nodes",
    "options": "Options",
    "durations_s": "Times of the nodes",
}


@dataclass(frozen=True)
class Side:
    """One of the two runs.

    Attributes:
        run_id: its id.
        workload: the pipeline's name.
        state: how it ended.
        mark: the state as a shape.
        started_at: ISO 8601, UTC.
        wall: how long it took, in words.
        told: metrics and pushed version, in words.
    """

    run_id: str
    workload: str
    state: str
    mark: str
    started_at: str
    wall: str
    told: str


@dataclass(frozen=True)
class Row:
    """One difference.

    Attributes:
        name: what it is.
        old, new: its values in words.
        note: the change, or the nodes that it concerns.
        is_better: whether that is one for the better; None if unknown.
    """

    name: str
    old: str
    new: str
    note: str
    is_better: bool | None


@dataclass(frozen=True)
class Section:
    """The changes of one kind.

    Attributes:
        rows: at most 200.
    """

    title: str
    rows: tuple[Row, ...]
    left_out: int


@dataclass(frozen=True)
class DifferencePage:
    """The changes between two runs.

    Attributes:
        sections: those with changes.
    """

    old: Side
    new: Side
    sections: tuple[Section, ...]
    notes: tuple[str, ...]

    @property
    def changes(self) -> int:
        """The number of changes, including those that are not shown."""
        return sum(len(section.rows) + section.left_out for section in self.sections)


def difference_page(difference: Difference, old: RunRecord, new: RunRecord) -> DifferencePage:
    """The page of the difference between two runs."""
    by_name = {name: [c for c in difference.changes if c.section == name] for name in SECTIONS}
    sections = tuple(_section(name, changes) for name, changes in by_name.items() if changes)
    return DifferencePage(_side(old), _side(new), sections, difference.notes)


def _side(record: RunRecord) -> Side:
    return Side(
        run_id=record.run_id,
        workload=record.workload,
        state=record.state,
        mark=MARK_OF.get(record.state, MARKS["skipped"]),
        started_at=record.started_at,
        wall=seconds(record.wall_s),
        told=one_line(record),
    )


def _section(name: str, changes: list[Change]) -> Section:
    rows = tuple(_row(change) for change in changes[:_SHOWN_CHANGES])
    return Section(_TITLES[name], rows, len(changes) - len(rows))


def _row(change: Change) -> Row:
    old, new, note = change.cells(_VALUE_LENGTH)
    better = None
    if change.change is not None and change.section == "metrics":
        better = is_better(change.name, change.change)
    return Row(change.name, old, new, note, better)
