"""The index page: all runs of an output folder, with the trends of their metrics and times."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from slipway.pipeline.report.page_head import COUNT, one_line
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import MARKS
from slipway.pipeline.terminal.durations import seconds

WIDTH_PX, HEIGHT_PX = 200.0, 40.0
PAGE_NAME = "report.html"
_TREND_RUNS = 60
_MARK_OF = {"complete": MARKS["complete"], "failed": MARKS["failed"], "stopped": MARKS["failed"]}


@dataclass(frozen=True)
class Row:
    """One run in a table.

    Attributes:
        mark: the symbol of the state.
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
class Trend:
    """One number over the runs of a pipeline, oldest run first.

    Attributes:
        name: the metric, or `wall time`.
        points: the `points` of an SVG polyline.
        low: the smallest value, as text.
        high: the largest value, as text.
        first: the value of the oldest run, as text.
        last: the value of the newest run, as text.
        runs: the number of runs.
    """

    name: str
    points: str
    low: str
    high: str
    first: str
    last: str
    runs: int


@dataclass(frozen=True)
class Index:
    """The content of the index page.

    Attributes:
        rows: the runs, newest first.
        trends: pipeline -> its trends.
    """

    rows: tuple[Row, ...]
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
    return Index(
        tuple(_linked(record, output, path) for record in records), {w: t for w, t in trends.items() if t}
    )


def row_of(record: RunRecord, *, link: str = "") -> Row:
    """Return a run as a row of a table."""
    return Row(
        run_id=record.run_id,
        workload=record.workload,
        state=record.state,
        mark=_MARK_OF.get(record.state, MARKS["skipped"]),
        started_at=record.started_at,
        wall_s=record.wall_s,
        wall=seconds(record.wall_s),
        told=one_line(record),
        link=link,
    )


def _linked(record: RunRecord, output: Path, path: Path) -> Row:
    page = output / "runs" / record.run_id / PAGE_NAME
    # With "./" in front, no browser takes a folder name that contains a colon for a URL scheme.
    link = f"./{quote(os.path.relpath(page, path.parent))}" if page.is_file() else ""
    return row_of(record, link=link)


def _trends(records: Sequence[RunRecord]) -> list[Trend]:
    """Return the trends of the latest completed runs; fully cached runs are ignored for the wall time."""
    done = [r for r in records if r.state in ("complete", "stopped") and not r.rollback][:_TREND_RUNS][::-1]
    names = dict.fromkeys(name for record in done for name in record.metrics if name != COUNT)
    made = [trend(name, [r.metrics[name] for r in done if name in r.metrics]) for name in names]
    ran = [r.wall_s for r in done if any(node.state == "complete" for node in r.nodes)]
    return [found for found in (*made, trend("wall time", ran, unit=" s")) if found is not None]


def trend(name: str, values: Sequence[float], *, unit: str = "") -> Trend | None:
    """Return the trend of a number, or None if it has fewer than two finite values.

    Args:
        name: the name of the trend.
        values: oldest first; values that are not finite are ignored.
        unit: appended to each number.
    """
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    height = high - low or 1.0
    points = " ".join(
        f"{WIDTH_PX * at / (len(known) - 1):.1f},{HEIGHT_PX * (1 - (value - low) / height):.1f}"
        for at, value in enumerate(known)
    )
    least, most, first, last = (f"{value:.4g}{unit}" for value in (low, high, known[0], known[-1]))
    return Trend(name, points, least, most, first, last, len(known))
