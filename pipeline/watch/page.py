"""The report page of `watch`: the outcome, the drifted columns with sample rows, and every window."""

from pathlib import Path

from slipway.pipeline.report.page import write
from slipway.pipeline.watch.judge_requests import Watched
from slipway.pipeline.watch.log_folder import left_out_lines
from slipway.pipeline.watch.windows import LEAST_ROWS


def write_page(watched: Watched, path: Path) -> Path:
    """Write the page atomically; return the file.

    The page shows logged values, so a new folder for it is accessible only to the owner (mode 0700).

    Raises:
        OSError: the page cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return write("watch.html.j2", gather(watched), path)


def gather(watched: Watched) -> dict[str, object]:
    """Return the content of the page, by its names in the template."""
    return {
        "title": f"{watched.request.workload}: is version {watched.request.version} still right?",
        "sentence": watched.sentence,
        "is_right": watched.is_right,
        "findings": [
            {
                "column": each.column,
                "since": each.since,
                "found": each.finding.headline,
                "rows": "; ".join(
                    f"{row.file} {row.line or row.row:,}: {row.value}" for row in each.finding.rows
                ),
                "remedy": each.finding.remedy,
            }
            for each in watched.drifted
        ],
        "windows": [
            {"name": each.span, "rows": each.rows, "drifted": ", ".join(sorted(each.findings))}
            for each in watched.windows
        ],
        "columns": ", ".join(watched.columns),
        "not_logged": ", ".join(watched.not_logged),
        "folder": str(watched.request.logs.folder),
        "by": watched.request.by,
        "least_rows": LEAST_ROWS,
        "merged": watched.merged,
        "left_out": left_out_lines(watched.left_out_counts),
    }
