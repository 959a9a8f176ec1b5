"""The report page of `watch`: the outcome, the drifted columns with sample rows, and every window."""

from dataclasses import dataclass
from pathlib import Path

from slipway.pipeline.report.page import write
from slipway.pipeline.watch.drift import Drifted
from slipway.pipeline.watch.judge_requests import Watched
from slipway.pipeline.watch.log_folder import left_out_lines
from slipway.pipeline.watch.windows import LEAST_ROWS


@dataclass(frozen=True)
class FindingRow:
    """A column that has drifted: since when, the finding, rows that show it, and the remedy."""

    column: str
    since: str
    found: str
    rows: str
    remedy: str


@dataclass(frozen=True)
class WindowRow:
    """One window, its hours or days in words, and the columns that have drifted in it."""

    name: str
    rows: int
    drifted: str


@dataclass(frozen=True)
class WatchPage:
    """The content of the page."""

    title: str
    sentence: str
    is_right: bool
    findings: tuple[FindingRow, ...]
    windows: tuple[WindowRow, ...]
    columns: str
    not_logged: str
    folder: str
    by: str
    least_rows: int
    merged: str = ""
    left_out: tuple[str, ...] = ()


def write_page(watched: Watched, path: Path) -> Path:
    """Write the page atomically; return the file.

    The page shows logged values, so a new folder for it is accessible only to the owner (mode 0700).

    Raises:
        OSError: the page cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return write("watch.html.j2", gather(watched), path)


def gather(watched: Watched) -> WatchPage:
    """Return the content of the page."""
    return WatchPage(
        title=f"{watched.request.workload}: is version {watched.request.version} still right?",
        sentence=watched.sentence,
        is_right=watched.is_right,
        findings=tuple(map(_finding, watched.drifted)),
        windows=tuple(
            WindowRow(each.span, each.rows, ", ".join(sorted(each.findings))) for each in watched.windows
        ),
        columns=", ".join(watched.columns),
        not_logged=", ".join(watched.not_logged),
        folder=str(watched.request.logs.folder),
        by=watched.request.by,
        least_rows=LEAST_ROWS,
        merged=watched.merged,
        left_out=tuple(left_out_lines(watched.left_out_counts)),
    )


def _finding(each: Drifted) -> FindingRow:
    finding = each.finding
    places = (f"{row.file} {row.line or row.row:,}: {row.value}" for row in finding.rows)
    return FindingRow(each.column, each.since, finding.headline, "; ".join(places), finding.remedy)
