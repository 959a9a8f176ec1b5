"""The command `runs` with a filter: shows the runs of a pipeline side by side."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from slipway.components.nearest import nearest
from slipway.pipeline.commands.show import find, listed
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.comparison import Comparison, compare_runs
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.terminal.invocation import command

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(m|h|d|w)")
_HOURS = {"m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
_MOST_HOURS = 24 * 365 * 100


def compared(
    workload: str | None, output: Path, *, by: str | None = None, since: str | None = None
) -> Comparison:
    """Compare the runs of a pipeline; rollbacks are left out.

    Args:
        workload: the workload's name or file; None: all pipelines.
        output: the folder that holds `runs/`.
        by: the metric or key to sort by; see `compare_runs`.
        since: compare only runs that began at this time or later; see `begin_of`.

    Raises:
        UsageError: there is no such pipeline, metric or key; or `since` is not a time.
    """
    first = begin_of(since) if since is not None else None
    found = [record for record in listed(output) if not record.rollback]
    if workload is not None:
        found = _of(workload, found, output)
    if first is not None:
        found = [record for record in found if _began(record) >= first]
    return compare_runs(found, by=by, searched=str(output.absolute()))


def named(names: Sequence[str], output: Path, *, page: Path | None = None) -> Comparison:
    """Compare the named runs, in the order given.

    Args:
        names: the runs, each named as in `find`.
        output: the folder that holds `runs/`.
        page: must be None, because a page shows exactly two runs.

    Raises:
        UsageError: there is no such run, or a page is requested.
    """
    if page is not None:
        raise UsageError(
            f"-o {page}: a page shows two runs, but {len(names)} are named.", hint="leave out -o"
        )
    return compare_runs([find(name, output) for name in names])


def begin_of(since: str, *, now: datetime | None = None) -> datetime:
    """Parse `--since`: an age (`30m`, `12h`, `7d`, `2w`), or an ISO 8601 date or time.

    A time without a zone is UTC, like the times of runs.

    Args:
        now: the current time; None: read from the clock.

    Raises:
        UsageError: `since` is neither.
    """
    if ago := _AGO.fullmatch(since.strip()):
        hours = min(float(ago[1]) * _HOURS[ago[2]], _MOST_HOURS)
        return (now or datetime.now(UTC)) - timedelta(hours=hours)
    try:
        found = datetime.fromisoformat(since.strip())
    except ValueError:
        raise UsageError(
            f"--since {since!r} is not a time.",
            hint="an age, such as 30m, 12h, 7d or 2w; or a date, such as 2026-11-20 or 2026-11-20T18:00",
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _began(record: RunRecord) -> datetime:
    try:
        found = datetime.fromisoformat(record.started_at)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _of(workload: str, records: Sequence[RunRecord], output: Path) -> list[RunRecord]:
    # As in other commands, a workload may be named by its file.
    name = Path(workload).absolute().parent.name if workload.endswith((".yaml", ".yml")) else workload
    found = [record for record in records if record.workload == name]
    names = sorted({record.workload for record in records})
    if not found and names:
        near = nearest(name, names)
        raise UsageError(
            f"{output} has no run of {name!r}{f'; nearest: {near}' if near else ''}.",
            hint=f"it has runs of: {', '.join(names)}; all runs: {command('runs', output=output)}",
        )
    return found
