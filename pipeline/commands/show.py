"""The commands `runs` and `show`: list the runs, and show the details of one."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from slipway.pipeline.engine.run_end import warn_of_damage
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import is_at_work, is_locked
from slipway.pipeline.runs.outcome import live_beside, read_stops, read_verdict
from slipway.pipeline.runs.record import OVERRIDES, RunRecord
from slipway.pipeline.screen.verdict_table import verdict_lines
from slipway.pipeline.screen.wording import (
    go_on_hints,
    metrics_line,
    node_line,
    rerun_command,
    rollback_line,
    stop_hints,
    stop_lines,
    summary,
    training_lines,
)
from slipway.pipeline.terminal.durations import seconds

_LOG_BYTES = 1_500


def runs(output: Path) -> list[RunRecord]:
    """Return all runs, newest first; a run marked as running without a process is returned as killed."""
    history = History(output.absolute())
    found = [_as_it_is(record, output) for record in history.runs()]
    warn_of_damage(history)
    return found


def listed(output: Path) -> list[RunRecord]:
    """Return the same as `runs`, but without nodes, which a list of thousands of runs does not need."""
    history = History(output.absolute())
    found = [_as_it_is(record, output) for record in history.runs(leave_out=("nodes",))]
    warn_of_damage(history)
    return found


def find(name: str | None, output: Path) -> RunRecord:
    """Return a run by its id or the start of it; without a name, the latest."""
    record = _as_it_is(History(output.absolute()).find(name), output)
    record.target = record.target.with_output(record.output)
    return record


def _as_it_is(record: RunRecord, output: Path) -> RunRecord:
    """Update an unfinished run: set its time so far, or mark it as killed if no process runs it.

    One in steps has no process between them; it is killed if its `step begin` ended before it had a plan.
    """
    if record.state != "running":
        return record
    history = History(output.absolute())
    record.wall_s = max(record.wall_s, history.alive_s(record.run_id))
    if record.in_steps:
        is_over = not is_locked(output, or_by_steps=True) and not (history.run(record.run_id) or record).nodes
    else:
        is_over = not is_at_work(output, record.run_id)
    if is_over:
        now = history.run(record.run_id)
        if now is not None and now.state != "running":  # it has ended since its record was read
            return now
        record.state = "killed"
        for node in record.nodes:
            if node.state in ("running", "waiting"):
                node.state, node.why = "skipped", "the run was killed"
    return record


def runs_text(records: Sequence[RunRecord], output: Path) -> str:
    """Return one line per run.

    If there is none, return the searched folder, which depends on the current folder.
    """
    return "\n".join(_run_lines(records)) or f"No runs yet in {output.absolute()}."


def _run_lines(records: Sequence[RunRecord]) -> Iterator[str]:
    for record in records:
        pushed = f"pushed {record.pushed['version']}" if record.pushed else ""
        facts = ", ".join(filter(None, [metrics_line(record.metrics), pushed, rollback_line(record)]))
        head = f"{record.run_id}  {record.workload:<12}  {record.state:<11}"
        yield f"{head}  {seconds(record.wall_s):>10}  {facts}".rstrip()


def show_text(record: RunRecord, *, width: int | None = None) -> str:
    """Return a run as text: its outcome, then each node.

    Args:
        width: the maximum width of tables, in columns; None for no limit.
    """
    longest = max((len(node.id) for node in record.nodes), default=0)
    lines = [
        f"{record.workload} {record.run_id}: {record.state}, {seconds(record.wall_s)}, {record.started_at}"
    ]
    lines += [node_line(node, width=longest) for node in record.nodes]
    if record.metrics:
        lines.append(f"metrics   {metrics_line(record.metrics)}")
    if record.training.get("verdict"):
        lines.append(f"training  {record.training['verdict']}")
    lines += training_lines(record.training)
    if record.blessed is not None:
        lines.append(f"blessed   {'yes' if record.blessed else 'no'}: {'; '.join(record.blessing_reasons)}")
    lines += verdict_lines(read_verdict(record), width=width)
    lines += [f"accepted  {OVERRIDES[name]}: {reason}" for name, reason in record.overrides.items()]
    stops = read_stops(record)
    for node_id, verdict in stops.items():
        lines += [f"stopped   {node_id}: {verdict.get('message', '')}", *stop_lines(verdict)]
    lines += stop_hints(record, stops)
    if record.state == "failed":
        lines += [*_log_ends(record), *summary(record)]
    elif record.state in ("killed", "interrupted", "pruned") and not record.in_steps:
        lines += go_on_hints(record)
    elif record.state == "killed":
        lines.append(f"hint: {rerun_command(record)}")
    if record.rollback:
        lines.append(f"rollback  {rollback_line(record)}")
    if record.pushed:
        lines.append(f"pushed    version {record.pushed['version']} -> {record.pushed['path']}")
        if live := live_beside(record.pushed["path"]):
            lines.append(f"live      version {live}")
    return "\n".join(lines)


def _log_ends(record: RunRecord) -> Iterator[str]:
    """Yield the last lines of the log of each node that failed."""
    from slipway.pipeline.report.nodes import log_tail  # other runs need none of it

    for node in record.nodes:
        if node.state == "failed" and (end := log_tail(record.folder, node.log, limit_bytes=_LOG_BYTES)):
            yield from [
                f"log       {node.id}, its last lines:",
                *(f"    {line}" for line in end.splitlines()),
            ]
