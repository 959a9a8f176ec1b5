"""All runs of an output folder on one page: a table of them, and the trends of their metrics and times."""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from slipway.components.counted_words import counted
from slipway.pipeline.report.artifacts import first_json
from slipway.pipeline.report.page_head import COUNT, one_line, what_failed
from slipway.pipeline.report.trend import Trend, training_trend, trend
from slipway.pipeline.runs.comparison import cell, changed_keys, compare_runs, number, short_names
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import MARKS, rollback_line
from slipway.pipeline.terminal.durations import seconds

PAGE_NAME = "report.html"
_TREND_RUNS = 60
_SHOWN_METRICS = 12
_SHOWN_CHANGES = 6
_MARK_OF = {"complete": MARKS["complete"], "failed": MARKS["failed"], "stopped": MARKS["failed"]}


@dataclass(frozen=True)
class Row:
    """One run in a table.

    Attributes:
        started_at: ISO 8601, UTC.
        wall: the duration, as text.
        told: the outcome, as text: the failure, the metrics and the pushed version, or the rollback.
        link: the run's report page, relative to the page of the table; empty if it has none.
    """

    run_id: str
    workload: str
    state: str
    mark: str
    started_at: str
    wall_s: float
    wall: str
    told: str
    link: str = ""


@dataclass(frozen=True)
class IndexRow:
    """One run in the table of all runs.

    Attributes:
        run: what every table tells of it; `told` is only what went wrong, or the rollback.
        metrics: for each of the table's metrics its value, in words and as a number; empty texts for none.
        version: the pushed version; empty if none was.
        changed: the keys that differ from the pipeline's run before, with both values, in words.
        curve: the course of its training; None if it has none.
    """

    run: Row
    metrics: tuple[tuple[str, str], ...]
    version: str
    changed: tuple[str, ...]
    curve: Trend | None


@dataclass(frozen=True)
class Index:
    """The content of the index page.

    Attributes:
        rows: the newest first.
        metrics: the columns of metrics: at most 12, those that the most runs have first.
        other_metrics: the number of those that are not shown.
        trends: pipeline -> its trends.
    """

    rows: tuple[IndexRow, ...]
    metrics: tuple[str, ...]
    other_metrics: int
    trends: dict[str, tuple[Trend, ...]]


def index(records: Sequence[RunRecord], output: Path, path: Path) -> Index:
    """Return the content of the index page.

    Args:
        records: the runs, newest first.
        output: the folder that holds `runs/`.
        path: the file that the page will be written to; links are relative to it.
    """
    workloads = dict.fromkeys(record.workload for record in records)
    trends = {w: tuple(_trends([r for r in records if r.workload == w])) for w in workloads}
    every = Counter(name for record in records for name in record.metrics if name != COUNT).most_common()
    names = tuple(name for name, _ in every[:_SHOWN_METRICS])
    curves = _Curves()
    runs_folder, page_folder = str(output / "runs"), str(path.parent)
    rows = tuple(
        _index_row(record, names, changed, curves, _link(record, runs_folder, page_folder))
        for record, changed in zip(records, _changes(records), strict=True)
    )
    return Index(rows, names, len(every) - len(names), {w: t for w, t in trends.items() if t})


def row_of(record: RunRecord) -> Row:
    """Return a run as a row of a table."""
    return _row(record, one_line(record))


def _row(record: RunRecord, told: str, link: str = "") -> Row:
    return Row(
        run_id=record.run_id,
        workload=record.workload,
        state=record.state,
        mark=_MARK_OF.get(record.state, MARKS["skipped"]),
        started_at=record.started_at,
        wall_s=record.wall_s,
        wall=seconds(record.wall_s),
        told=told,
        link=link,
    )


def _index_row(
    record: RunRecord, names: Sequence[str], changed: tuple[str, ...], curves: "_Curves", link: str
) -> IndexRow:
    curve, problem = curves.of(record)
    told = ", ".join(filter(None, [rollback_line(record) or what_failed(record), problem]))
    found = record.metrics
    metrics = tuple(_metric(found[name]) if name in found else ("", "") for name in names)
    version = record.pushed["version"] if record.pushed else ""
    return IndexRow(_row(record, told, link), metrics, version, changed, curve)


def _metric(value: float) -> tuple[str, str]:
    """Return a metric in words, and as the number to sort by; without that if it is not finite."""
    return number(value), repr(value) if math.isfinite(value) else ""


def _link(record: RunRecord, runs_folder: str, page_folder: str) -> str:
    page = f"{runs_folder}/{record.run_id}/{PAGE_NAME}"
    # In a form in which no browser takes a folder's name with a colon for a scheme.
    return f"./{quote(os.path.relpath(page, page_folder))}" if os.path.isfile(page) else ""  # noqa: PTH113


class _Curves:
    """Reads the course of trainings, each file once: runs with a cached Trainer share theirs."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Trend | None, str]] = {}

    def of(self, record: RunRecord) -> tuple[Trend | None, str]:
        """The course of a run's training, or None; and why it cannot be shown, in words, if so."""
        trained = next((artifact["uri"] for _, artifact in record.outputs_of("ModelRun")), None)
        if trained is None:
            return None, ""
        if trained not in self._known:
            self._known[trained] = _curve(record)
        return self._known[trained]


def _curve(record: RunRecord) -> tuple[Trend | None, str]:
    try:
        return training_trend(first_json(record, "ModelRun", "history.json").get("epochs")), ""
    except (OSError, ValueError, RecursionError) as error:  # of another version, or damaged
        return None, f"its curve cannot be shown: {error}"


def _changes(records: Sequence[RunRecord]) -> list[tuple[str, ...]]:
    """For each run the keys that differ from its pipeline's run before, in words; rollbacks have none."""
    at_runs = [at for at, record in enumerate(records) if not record.rollback]
    compared = compare_runs([records[at] for at in at_runs])
    shown = short_names(compared.keys, among=dict.fromkeys(key for found in compared.values for key in found))
    told: list[tuple[str, ...]] = [()] * len(records)
    before: dict[str, Mapping[str, object]] = {}
    for at, values in reversed(list(zip(at_runs, compared.values, strict=True))):
        workload = records[at].workload
        if workload in before:
            told[at] = _changed(before[workload], values, shown)
        before[workload] = values
    return told


def _changed(
    old: Mapping[str, object], new: Mapping[str, object], shown: Mapping[str, str]
) -> tuple[str, ...]:
    keys = changed_keys(old, new, shown)
    told = [f"{shown[key]} {_value(old, key)} → {_value(new, key)}" for key in keys[:_SHOWN_CHANGES]]
    more = [f"and {counted(len(keys) - _SHOWN_CHANGES, 'more key')}"] if len(keys) > _SHOWN_CHANGES else []
    return (*told, *more)


def _value(values: Mapping[str, object], key: str) -> str:
    return cell(values[key]) if key in values else "-"


def _trends(records: Sequence[RunRecord]) -> list[Trend]:
    """Return the trends of the latest completed runs; fully cached runs are ignored for the wall time."""
    done = [r for r in records if r.state in ("complete", "stopped") and not r.rollback][:_TREND_RUNS][::-1]
    names = dict.fromkeys(name for record in done for name in record.metrics if name != COUNT)
    made = [trend(name, [r.metrics[name] for r in done if name in r.metrics]) for name in names]
    ran = [r.wall_s for r in done if any(node.state == "complete" for node in r.nodes)]
    return [found for found in (*made, trend("wall time", ran, unit=" s")) if found is not None]
