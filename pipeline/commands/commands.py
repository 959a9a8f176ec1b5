"""What the commands of local_runner.py do, without their parsing and printing."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.root import PROJECT_ROOT
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import is_locked
from slipway.pipeline.runs.outcome import live_beside, read_stops, read_verdict
from slipway.pipeline.runs.record import OVERRIDES, RunRecord
from slipway.pipeline.screen.verdict_table import verdict_lines
from slipway.pipeline.screen.wording import (
    again_command,
    go_on_hints,
    metrics_line,
    node_line,
    rollback_line,
    step_lines,
    steps_go_on,
    stop_hints,
    stop_lines,
    summary,
    training_lines,
)
from slipway.pipeline.terminal.durations import seconds
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.terminal.printable import printable

# What reads workload files takes a quarter of a second to import: only the commands that need it do.
if TYPE_CHECKING:
    from slipway.pipeline.commands.doctor import Diagnosis
    from slipway.pipeline.commands.gc.sweep import Sweep
    from slipway.pipeline.plan.baseline import Baseline
    from slipway.pipeline.plan.request import Options, Request
    from slipway.pipeline.runs.diff import Difference


@dataclass(frozen=True)
class Planned:
    """The answer of `plan`: one `{id, action, why}` for each node."""

    workload: str
    nodes: tuple[dict[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"workload": self.workload, "nodes": list(self.nodes)}

    def text(self) -> str:
        """One line a node, then the count."""
        width = max(len(node["id"]) for node in self.nodes)
        lines = [f"{node['id']:<{width}}  {node['action']:<5}  {node['why']}" for node in self.nodes]
        running = sum(node["action"] == "run" for node in self.nodes)
        return "\n".join([*lines, f"{running} of {len(lines)} nodes would run."])


def request(
    workload: Path,
    *,
    output: Path,
    sets: Sequence[str] = (),
    profile: str | None = None,
    pipeline: str | None = None,
    beam_args: Sequence[str] = (),
    overrides: Mapping[str, str] | None = None,
    **options: "Unpack[Options]",
) -> "Request":
    """What the command line asks for: a workload, or with `pipeline` any TFX pipeline.

    Raises:
        UsageError: it is not there or wrong, or the options do not fit it.
    """
    from slipway.pipeline.plan.request import pipeline_request, workload_request

    shared: dict[str, Any] = {"sets": sets, "output": output.absolute(), "beam_args": beam_args, **options}
    if pipeline is None:
        return workload_request(workload, profile=profile, overrides=overrides, **shared)
    if profile is not None:
        raise UsageError("--profile belongs to a workload file; --pipeline has none.")
    for name in overrides or {}:
        raise UsageError(f"{OVERRIDES[name]} belongs to the gates of a workload; --pipeline has its own.")
    return pipeline_request(pipeline, **shared)


def run(asked: "Request") -> int:
    """Runs what is asked for; returns the exit code."""
    return _execute(asked)


def resume(name: str | None, *, output: Path, jobs: int | None) -> int:
    """Goes on with a run, or says where the result of one lies that is complete; returns the exit code.

    Raises:
        UsageError: there is nothing to go on with.
    """
    from slipway.pipeline.plan.request import again

    record = find(name, output)
    if record.in_steps and record.state != "complete":
        raise UsageError(
            f"Run {record.run_id} is taken in steps by another program, which goes on with it.",
            hint=steps_go_on(record),
        )
    if record.state == "complete":
        _tell(f"Run {record.run_id} is complete: there is nothing to resume.")
        _tell(*summary(record, stops={}, verdict=read_verdict(record)))
        return 0
    if record.state == "stopped":
        hint = again_command(record) if any(node.is_stop for node in record.nodes) else ""
        raise UsageError(f"Run {record.run_id} is {record.state}: there is nothing to resume.", hint=hint)
    if record.target.again:
        raise UsageError(f"{record.run_id} is a rehearsal: it starts anew.", hint=record.target.again)
    return _execute(again(record, jobs=jobs), record)


def _tell(*lines: str) -> None:
    for line in lines:
        print(printable(line), file=sys.stderr)


def begin(asked: "Request", *, airflow: str) -> str:
    """Begins a run whose nodes another program runs, such as Airflow by that command; returns its id."""
    from slipway.pipeline.commands.end_listeners import END_LISTENERS
    from slipway.pipeline.engine.steps import begin as begin_run
    from slipway.pipeline.screen.progress import stderr_display

    display = stderr_display()
    try:
        return begin_run(asked, display=display, airflow=airflow, listeners=END_LISTENERS).run_id
    finally:
        display.close()


def run_node(run_id: str, node_id: str, *, output: Path) -> int:
    """Runs one node of such a run, says how it went, and returns the exit code."""
    from slipway.pipeline.engine.steps import run_node as run
    from slipway.pipeline.screen.progress import LineDisplay

    record, code = run(run_id, node_id, output=output.absolute(), display=LineDisplay(sys.stderr))
    _tell(*step_lines(record, node_id, stops=read_stops(record)))
    return code


def finish(run_id: str, *, output: Path) -> int:
    """Closes such a run, says what it achieved, and returns the exit code."""
    from slipway.pipeline.commands.end_listeners import END_LISTENERS
    from slipway.pipeline.engine.steps import finish as finish_run
    from slipway.pipeline.screen.progress import LineDisplay

    display = LineDisplay(sys.stderr)
    record = finish_run(run_id, output=output.absolute(), display=display, listeners=END_LISTENERS)
    return record.exit_code or 0


def doctor(output: Path, *, deep: bool) -> "Diagnosis":
    """What this machine has, with a remedy for what is missing."""
    from slipway.pipeline.commands.doctor import examine

    return examine(output, os.environ, deep=deep)


def _execute(asked: "Request", resumed: RunRecord | None = None) -> int:
    from slipway.pipeline.commands.end_listeners import END_LISTENERS
    from slipway.pipeline.engine.execution import execute
    from slipway.pipeline.screen.progress import stderr_display

    display = stderr_display()
    try:
        record = execute(asked, display=display, resumed=resumed, listeners=END_LISTENERS)
        display.ends(record)
    finally:
        display.close()
    return record.exit_code or 0


def plan(asked: "Request") -> Planned:
    """Decides what would run, and why."""
    from slipway.pipeline.engine.graphs import plan_only

    history = History(asked.output)
    decided = plan_only(asked, history)
    _warn_of_damage(history)
    nodes = tuple({"id": d.node_id, "action": d.action, "why": d.why} for d in decided.decisions.values())
    return Planned(decided.graph.name, nodes)


def runs(output: Path) -> list[RunRecord]:
    """All runs, the newest first; one that says it runs while nothing does is called killed."""
    history = History(output.absolute())
    found = [_as_it_is(record, output) for record in history.runs()]
    _warn_of_damage(history)
    return found


def _warn_of_damage(history: History) -> None:
    from slipway.pipeline.engine.run_end import warn_of_damage

    warn_of_damage(history)


def find(name: str | None, output: Path) -> RunRecord:
    """One run by its id or the start of it; the latest without a name."""
    record = _as_it_is(History(output.absolute()).find(name), output)
    record.target = record.target.lying_in(record.output)
    return record


def _as_it_is(record: RunRecord, output: Path) -> RunRecord:
    """A run that has not ended, with the time that it has gone on; killed, where nothing runs it."""
    if record.state != "running" or record.in_steps:
        return record
    record.wall_s = max(record.wall_s, History(output.absolute()).alive_s(record.run_id))
    if not is_locked(output):
        record.state = "killed"
        for node in record.nodes:
            if node.state in ("running", "waiting"):
                node.state, node.why = "skipped", "the run was killed"
    return record


def report(name: str | None, output: Path, *, index: bool, path: Path | None) -> Path:
    """Writes the page of a run, or with `index` that of all runs; returns the file.

    Raises:
        UsageError: there is no such run.
        PipelineError: the page cannot be written, or the run's files cannot be read.
    """
    from slipway.pipeline.report.page import write_index, write_page

    if index and name is not None:
        raise UsageError("--index is about all runs: name none.")
    try:
        if index:
            return write_index(runs(output), output.absolute(), path)
        return write_page(find(name, output), output.absolute(), path)
    except (OSError, ValueError) as error:
        raise _no_page(error) from error


def diff(old: str, new: str, output: Path) -> "Difference":
    """What changed from one run to another; each is named as in `find`."""
    return _difference(find(old, output), find(new, output), output)


def diff_page(old: str, new: str, output: Path, path: Path) -> Path:
    """Writes what changed from one run to another as a page; returns the file.

    Raises:
        UsageError: there is no such run.
        PipelineError: the page cannot be written.
    """
    from slipway.pipeline.report.page import write_difference

    before, after = find(old, output), find(new, output)
    try:
        return write_difference(_difference(before, after, output), before, after, path)
    except OSError as error:
        raise _no_page(error) from error


def _no_page(error: OSError | ValueError) -> PipelineError:
    words = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        words = f"{error.filename}: {error.strerror}"
    return PipelineError(f"The page cannot be written: {words}", hint="another file: -o FILE")


def _difference(before: RunRecord, after: RunRecord, output: Path) -> "Difference":
    from slipway.pipeline.runs.diff import compare, read_fingerprints

    history = History(output.absolute())
    prints = [read_fingerprints(history.folder(record.run_id)) for record in (before, after)]
    return compare(before, after, *prints)


def baseline(
    workload: Path, output: Path, *, new: str | None = None, clear: bool = False, reason: str = ""
) -> "Baseline":
    """What the next model is compared with; with `new` (a run) or `clear`, after that change.

    Raises:
        UsageError: both are given, the run cannot be the baseline, or an engine is at work.
    """
    from slipway.pipeline.config import load_workload
    from slipway.pipeline.plan.baseline import clear_baseline, set_baseline, show_baseline
    from slipway.pipeline.plan.request import workload_file

    if new is not None and clear:
        raise UsageError("--set and --clear cannot both be meant.")
    config = load_workload(workload_file(workload).absolute(), root=PROJECT_ROOT)
    if clear:
        return clear_baseline(config, output.absolute(), reason=reason)
    if new is not None:
        return set_baseline(config, output.absolute(), find(new, output), reason=reason)
    return show_baseline(config.name, output.absolute())


def gc(output: Path, *, keep: int, dry_run: bool) -> "Sweep":
    """Removes what no kept run, pushed version or baseline needs; see `collect`."""
    from slipway.pipeline.commands.gc.gc import collect

    return collect(output, keep=keep, dry_run=dry_run)


def gc_text(sweep: "Sweep", output: Path, *, keep: int) -> str:
    """What went or would go; a dry run ends with the command that removes it."""
    return sweep.text(command=command("gc", "--keep", str(keep), output=output))


def accept_schema(name: str | None, output: Path, *, agrees: Callable[[str], bool]) -> str:
    """Takes a run's proposed edits over into its schema file, if `agrees` says yes to the diff.

    Returns:
        What was done, and what to do next.

    Raises:
        UsageError: there is nothing to take over, or it does not fit the file as it is now.
        PipelineError: the file could not be written.
    """
    from slipway.pipeline.commands.accept_schema import accept, propose

    record = find(name, output)
    proposal = propose(record)
    if proposal.before == proposal.after:
        return f"{proposal.path} holds these edits already.\nhint: {again_command(record)}"
    if not accept(proposal, agrees=agrees):
        return f"{proposal.path} is as it was."
    return f"{proposal.path} was changed.\nhint: {again_command(record)}"


def runs_text(records: Sequence[RunRecord], output: Path) -> str:
    """One line a run; where there is none, the folder that was looked at: from elsewhere it is another."""
    return "\n".join(_run_lines(records)) or f"No runs yet in {output.absolute()}."


def _run_lines(records: Sequence[RunRecord]) -> Iterator[str]:
    for record in records:
        pushed = f"pushed {record.pushed['version']}" if record.pushed else ""
        facts = ", ".join(filter(None, [metrics_line(record.metrics), pushed, rollback_line(record)]))
        head = f"{record.run_id}  {record.workload:<12}  {record.state:<11}"
        yield f"{head}  {seconds(record.wall_s):>10}  {facts}".rstrip()


def show_text(record: RunRecord, *, width: int | None = None) -> str:
    """A run as text: what came of it, then each node.

    Args:
        record: the run.
        width: of the screen, in columns, which tables keep within; None: as wide as they come.
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
    if record.state in ("failed", "killed", "interrupted") and not record.in_steps:
        lines += go_on_hints(record)
    if record.rollback:
        lines.append(f"rollback  {rollback_line(record)}")
    if record.pushed:
        lines.append(f"pushed    version {record.pushed['version']} -> {record.pushed['path']}")
        if live := live_beside(record.pushed["path"]):
            lines.append(f"live      version {live}")
    return "\n".join(lines)
