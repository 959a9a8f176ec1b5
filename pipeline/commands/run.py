"""The commands `run`, `resume` and `plan`, and those that let another program run the nodes of a run."""

import contextlib
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.pipeline.commands.show import find
from slipway.pipeline.engine.run_end import LateInterrupt, warn_of_damage
from slipway.pipeline.errors import ConfigError, UsageError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.outcome import read_stops, read_verdict
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.result_files import moved_from
from slipway.pipeline.screen.wording import (
    rerun_command,
    step_continuation,
    step_lines,
    summary,
)
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.terminal.printable import say

# The modules that read workload files take a quarter of a second to import: only commands that need them do.
if TYPE_CHECKING:
    from slipway.pipeline.plan.run_request import Request


@dataclass(frozen=True)
class Planned:
    """The result of `plan`: one `{id, action, why}` for each node."""

    workload: str
    nodes: tuple[dict[str, str], ...]

    def to_json(self) -> dict[str, object]:
        """Return the plan as plain data."""
        return {"workload": self.workload, "nodes": list(self.nodes)}

    def text(self) -> str:
        """Return one line per node, then the count."""
        width = max(len(node["id"]) for node in self.nodes)
        lines = [f"{node['id']:<{width}}  {node['action']:<5}  {node['why']}" for node in self.nodes]
        running = sum(node["action"] == "run" for node in self.nodes)
        return "\n".join([*lines, f"{running} of {len(lines)} nodes would run."])


def run(asked: "Request", *, resumed: RunRecord | None = None) -> int:
    """Run a request, or continue the run `resumed`; return the exit code.

    Raises:
        UsageError: the request is invalid; there is no run.
    """
    from slipway.pipeline.commands import warm as warming
    from slipway.pipeline.commands.end_listeners import END_LISTENERS
    from slipway.pipeline.engine.local_run import execute
    from slipway.pipeline.engine.processes import standby
    from slipway.pipeline.screen.run_display import stderr_display

    _warn_if_nobody_is_told(asked)
    leave = warming.leaving()

    def leave_warm_process(ended: RunRecord) -> None:
        # A run that ran no node did not need TFX, and neither will the next one like it.
        if any(node.attempts for node in ended.nodes):
            leave()

    say(*moved_lines(asked.workload, asked.output))
    with (
        contextlib.closing(stderr_display()) as display,
        standby.find() or contextlib.nullcontext() as warm,
    ):
        listeners = (*END_LISTENERS, leave_warm_process)
        try:
            record = execute(asked, display=display, resumed=resumed, warm=warm, listeners=listeners)
        except LateInterrupt as error:
            return error.exit_code
    return record.exit_code or 0


def _warn_if_nobody_is_told(asked: "Request") -> None:
    """Say before the run what keeps it from telling its end; a fault of a notification stops no run."""
    try:
        asked.check_notify()
    except ConfigError as error:
        say(f"warning: {error.message}: nobody will be told there how this run ends.", f"hint: {error.hint}")


def resume(name: str | None, *, output: Path, jobs: int | None) -> int:
    """Continue a run, or show where the result of a complete one is; return the exit code.

    Raises:
        UsageError: there is nothing to continue.
    """
    from slipway.pipeline.plan.run_request import again

    record = find(name, output)
    if record.in_steps and record.state != "complete":
        raise UsageError(
            f"Run {record.run_id} is run step by step by another program; continue it there.",
            hint=step_continuation(record),
        )
    if record.state == "complete":
        say(f"Run {record.run_id} is complete: there is nothing to resume.")
        say(*summary(record, stops={}, verdict=read_verdict(record)))
        return 0
    if record.state == "stopped":
        # A model that was not good enough is no node's error; its checks are shown.
        shown = command("show", record.run_id, output=output)
        hint = rerun_command(record) if any(node.is_stop for node in record.nodes) else shown
        raise UsageError(f"Run {record.run_id} is {record.state}: there is nothing to resume.", hint=hint)
    if record.target.again:
        raise UsageError(
            f"{record.run_id} is a rehearsal and cannot be resumed; start it again.", hint=record.target.again
        )
    return run(again(record, jobs=jobs), resumed=record)


def moved_lines(workload: str, output: Path) -> list[str]:
    """Return lines that say how to keep a pipeline's results, if its output folder was moved; else none."""
    output = output.absolute()
    latest = next(History(output).begun_runs(workload), None)
    old = moved_from(latest, output) if latest else None
    if old is None:
        return []
    return [
        f"{output} was moved here from {old}, where ML Metadata looks for its results and the last blessed "
        "model. Without a link there, all nodes run again.",
        f"hint: {shlex.join(['ln', '-s', str(output), str(old)])}",
    ]


def begin(asked: "Request", *, airflow: str) -> str:
    """Begin a run whose nodes another program runs, and return the run's id.

    Args:
        airflow: the command by which Airflow starts such a run, to be shown in hints.

    Raises:
        UsageError: as `run`.
    """
    from slipway.pipeline.commands.end_listeners import END_LISTENERS
    from slipway.pipeline.engine.processes import standby
    from slipway.pipeline.engine.stepwise_run import begin as begin_run
    from slipway.pipeline.screen.run_display import stderr_display

    _warn_if_nobody_is_told(asked)
    with (
        contextlib.closing(stderr_display()) as display,
        standby.find() or contextlib.nullcontext() as warm,
    ):
        record = begin_run(asked, display=display, airflow=airflow, warm=warm, listeners=END_LISTENERS)
    return record.run_id


def run_node(run_id: str, node_id: str, *, output: Path) -> int:
    """Run one node of a run from `begin`, report the result, and return the exit code."""
    from slipway.pipeline.engine.processes import standby
    from slipway.pipeline.engine.stepwise_run import run_node as run
    from slipway.pipeline.screen.run_display import LineDisplay

    display = LineDisplay(sys.stderr)
    with standby.find() or contextlib.nullcontext() as warm:
        record, code = run(run_id, node_id, output=output.absolute(), display=display, warm=warm)
    say(*step_lines(record, node_id, stops=read_stops(record)))
    return code


def finish(run_id: str, *, output: Path) -> int:
    """Close a run from `begin`, report its outcome, and return the exit code."""
    from slipway.pipeline.commands.end_listeners import END_LISTENERS
    from slipway.pipeline.engine.stepwise_run import finish as finish_run
    from slipway.pipeline.screen.run_display import LineDisplay

    display = LineDisplay(sys.stderr)
    try:
        record = finish_run(run_id, output=output.absolute(), display=display, listeners=END_LISTENERS)
    except LateInterrupt as error:
        return error.exit_code
    return record.exit_code or 0


def plan(asked: "Request") -> Planned:
    """Return which nodes would run, and why; leave a warm process for the run that follows."""
    from slipway.pipeline.commands import warm as warming
    from slipway.pipeline.engine.plan_without_run import plan_only
    from slipway.pipeline.engine.processes import standby

    leave = warming.leaving()
    history = History(asked.output)
    with standby.find() or contextlib.nullcontext() as warm:
        decided = plan_only(asked, history, warm=warm)
    warn_of_damage(history)
    say(*moved_lines(asked.workload, asked.output))
    if any(each.action == "run" for each in decided.decisions.values()):
        leave()
    nodes = tuple({"id": d.node_id, "action": d.action, "why": d.why} for d in decided.decisions.values())
    return Planned(decided.graph.name, nodes)
