"""The content of the page that compares two runs: only the changes, old beside new. Pure."""

from dataclasses import dataclass

from slipway.pipeline.report.index import Row, row_of
from slipway.pipeline.report.page_head import is_better
from slipway.pipeline.runs.diff import SECTIONS, Change, Difference
from slipway.pipeline.runs.record import RunRecord

_SHOWN_CHANGES = 200
_VALUE_LENGTH = 300
_TITLES = {
    "outcome": "Result",
    "metrics": "Metrics",
    "parameters": "Parameters",
    "code": "Code",
    "data": "Data",
    "schema": "Schema",
    "baseline": "Baseline",
    "stack": "Packages",
    "nodes": "Nodes",
    "options": "Options",
    "durations_s": "Node durations",
}


@dataclass(frozen=True)
class ChangeRow:
    """One difference.

    Attributes:
        note: the change, or the nodes that it concerns.
        is_better: whether the change is an improvement; None if unknown.
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
        rows: at most 200 changes.
        left_out: the number of changes that are not in `rows`.
    """

    title: str
    rows: tuple[ChangeRow, ...]
    left_out: int


@dataclass(frozen=True)
class DifferencePage:
    """The changes between two runs."""

    old: Row
    new: Row
    sections: tuple[Section, ...]
    notes: tuple[str, ...]

    @property
    def changes(self) -> int:
        """The number of changes, including those that are not shown."""
        return sum(len(section.rows) + section.left_out for section in self.sections)


def difference_page(difference: Difference, old: RunRecord, new: RunRecord) -> DifferencePage:
    """Return the content of the page that compares two runs."""
    by_name = {name: [c for c in difference.changes if c.section == name] for name in SECTIONS}
    sections = tuple(_section(name, changes) for name, changes in by_name.items() if changes)
    return DifferencePage(row_of(old), row_of(new), sections, difference.notes)


def _section(name: str, changes: list[Change]) -> Section:
    rows = tuple(_row(change) for change in changes[:_SHOWN_CHANGES])
    return Section(_TITLES[name], rows, len(changes) - len(rows))


def _row(change: Change) -> ChangeRow:
    old, new, note = change.cells(_VALUE_LENGTH)
    better = None
    if change.change is not None and change.section == "metrics":
        better = is_better(change.name, change.change)
    return ChangeRow(change.name, old, new, note, better)
