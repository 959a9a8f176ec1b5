"""The texts about a run: the lines of nodes, the summary, failures and hints. Pure."""

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from slipway.components.counted_words import agreeing, counted
from slipway.pipeline.runs.comparison import number
from slipway.pipeline.runs.record import (
    OVERRIDES,
    PRUNED,
    WHY,
    Export,
    NodeRecord,
    Pushed,
    RunRecord,
    Training,
    Verdict,
)
from slipway.pipeline.runs.run_target import IrRun, ModuleRun, OfWorkload
from slipway.pipeline.screen.verdict_table import SHOWN_CHECKS, check_table
from slipway.pipeline.terminal.durations import seconds
from slipway.pipeline.terminal.invocation import command

# The reason shown for nodes that a resumed run does not run again.
DONE_BEFORE = "done before the run was resumed"
# A status is shown by a word and a mark; colour, on a terminal, only repeats it.
MARKS = {
    "waiting": "·",
    "running": "▸",
    "complete": "✓",
    "cached": "=",
    "failed": "✗",
    "skipped": "-",
}
# More lines or findings than this do not fit on a screen together with the nodes.
_SHOWN_STOP_LINES = 12
_SHOWN_FINDINGS = 3


def metrics_line(metrics: dict[str, float]) -> str:
    """Return the overall metrics on one line; counts without decimals."""
    shown = {
        name: f"{value:.0f}" if float(value).is_integer() else number(value)
        for name, value in metrics.items()
    }
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def rollback_line(record: RunRecord) -> str:
    """Return the result of a rollback, with its user and reason; empty for a run of the pipeline."""
    done = record.rollback
    if not done:
        return ""
    line = f"rolled back from {done['instead_of']} to {done['version']} by {done['by']}"
    return f"{line}: {done['reason']}" if done["reason"] else line


def node_line(node: NodeRecord, *, width: int) -> str:
    """Return one node on one line: mark, name, state, time, reason."""
    took = seconds(node.wall_s) if node.state in ("complete", "failed") else ""
    why = node.error["message"] if node.state == "failed" and node.error else node.why
    return f"{MARKS[node.state]} {node.id:<{width}}  {node.state:<8}  {took:>10}  {why}".rstrip()


def summary(
    record: RunRecord,
    *,
    stops: Mapping[str, Verdict] | None = None,
    verdict: Verdict | None = None,
    passed: Sequence[Verdict] = (),
    width: int | None = None,
) -> Iterator[str]:
    """Yield the last lines of a run: the outcome first, then the numbers, then the next steps.

    Args:
        stops: the verdict of each gate node that stopped the run; see `outcome.read_stops`.
        verdict: the model gate's verdict; see `outcome.read_verdict`.
        passed: the verdicts of the data gates that let the data pass; see `outcome.read_verdicts`.
        width: the maximum width of tables, in columns; None for no limit.
    """
    if record.state == "failed":
        yield from _failure(record)
        return
    if record.state == "interrupted":
        kept = _count(record, "complete", "cached")
        nodes = f"{counted(kept, 'finished node')} {agreeing(kept, 'are')}"
        yield f"Interrupted. {nodes} kept; nothing is left running."
        if not record.in_steps:
            yield f"hint: {resume_command(record)}"
        return
    if record.state == "pruned":
        # In topological order, the node that was ended comes before those that it left out.
        ended = next((node for node in record.nodes if node.why.startswith(PRUNED)), None)
        yield f"{ended.id}: {ended.why}. Its state is kept." if ended else "Pruned."
        yield f"hint: {resume_command(record)}   # trains it to the end"
        return
    if record.state == "killed":
        done = _count(record, "complete", "cached")
        yield (f"Killed: the engine ended abruptly. {done} of {len(record.nodes)} nodes are done and kept.")
        if not record.in_steps and not _is_rehearsal(record):
            yield f"hint: {resume_command(record)}"
        return
    if record.state == "stopped" and any(node.is_stop for node in record.nodes):
        yield from _stop(record, stops or {})
        return
    if record.state == "stopped":
        if record.pushed:  # a different model than the refused one
            yield _pushed_line(record, record.pushed)
        yield from refusal_lines(record, verdict or Verdict(), width)
        if isinstance(record.target.target, OfWorkload):
            again = rerun_command(record, **{**record.overrides, "bless": WHY})  # else the data stops it now
            yield f"hint: {again}   # blesses it, on the record"
    elif record.pushed:
        yield _pushed_line(record, record.pushed)
    else:
        yield f"Done: {record.workload}, nothing to push."
    yield from result_lines(record, verdict=verdict, passed=passed)
    yield f"hint: {_next_step(record)}"


def result_lines(
    record: RunRecord, *, verdict: Verdict | None = None, passed: Sequence[Verdict] = ()
) -> Iterator[str]:
    """Yield the numbers of a run whose nodes are done; the arguments are those of `summary`."""
    if record.blessed:
        yield f"Blessed: {'; '.join(record.blessing_reasons) or 'yes'}."
    if record.blessed is not None:
        yield from (f"Warning: {warning}." for warning in (verdict or {}).get("warnings", ()))
    # Findings about the data are shown only by the run that checked the data.
    if any(node.state == "complete" and node.outputs_of("schemas.DataVerdict") for node in record.nodes):
        yield from _data_lines(passed)
    if record.metrics:
        yield f"Metrics on the eval split: {metrics_line(record.metrics)}"
    # The training speed is shown only by the run that trained; `show` prints it for any run.
    trained = any("model_run" in node.outputs for node in record.nodes if node.state == "complete")
    if trained and record.training.get("verdict"):
        yield f"Training: {record.training['verdict']}"
    yield _work_line(record)


def _data_lines(passed: Sequence[Verdict]) -> Iterator[str]:
    """Yield the findings that a data gate let pass."""
    every = (finding for verdict in passed for finding in verdict.get("findings", ()))
    found = [finding for finding in every if finding.get("what")]  # a gate of one's own may tell less
    for finding in found[:_SHOWN_FINDINGS]:
        about = f"{finding['feature']}: " if finding.get("feature") else ""
        yield f"Data: {about}{finding['what']}"
    if len(found) > _SHOWN_FINDINGS:
        yield f"Data: and {counted(len(found) - _SHOWN_FINDINGS, 'more finding')}, in the report"


def _pushed_line(record: RunRecord, pushed: Pushed) -> str:
    line = f"Pushed: {record.workload} version {pushed['version']} -> {pushed['path']}"
    # A cached result publishes nothing: nothing has changed, or after a rollback another version stays live.
    pushers = [node for node, _ in record.outputs_of("PushedModel") if node.state == "cached"]
    notes = [node.why for node in pushers[:1]]
    if "live" in pushed:
        notes.append(f"version {pushed['live']} is live")
    if "over" in pushed:
        notes.append(f"over {pushed['over']}")
    return f"{line} ({'; '.join(notes)})" if notes else line


def training_lines(training: Training) -> Iterator[str]:
    """Yield the Tuner's result, and each exported smaller form with its size and change of metrics."""
    if tuned := training.get("tuned"):
        yield f"tuned     {', '.join(f'{name} {value}' for name, value in tuned.items())}"
    for form in training.get("exports", ()):
        yield f"export    {form['kind']} {form['size_bytes'] / 1000:,.0f} kB, {change_words(form)}"


def change_words(form: Export) -> str:
    """Return what a smaller form of a model costs in each metric."""
    changes = (f"{name} {value:+.2g}" for name, value in form["change"].items())
    return ", ".join([*changes, *(f"{name} is no number" for name in form.get("no_number", ()))])


def _failure(record: RunRecord) -> Iterator[str]:
    failed = [node for node in record.nodes if node.state == "failed"]
    done = _count(record, "complete", "cached")
    names = ", ".join(node.id for node in failed) or "the engine"
    yield f"Failed: {names}, after {done} of {len(record.nodes)} nodes. What is finished is kept."
    for node in failed:
        yield from _failed_node(record, node)
    if record.error and not failed:
        yield f"  {record.error['message']}"
        if hint := record.error.get("hint"):
            yield f"    hint: {hint}"
    if record.in_steps:
        yield f"hint: {step_continuation(record)}"
    else:
        yield from go_on_hints(record)


def _failed_node(record: RunRecord, node: NodeRecord) -> Iterator[str]:
    error = node.failure
    where = f"{error['where']}: " if error.get("where") else ""
    yield f"  {node.id}: {where}{error['message'] or 'no error message was reported'}"
    if error.get("hint"):
        yield f"    hint: {error['hint']}"
    elif node.type == "Evaluator" and _has_baseline(record) and not _is_rehearsal(record):
        # `baseline` is for workloads: without a name, it would retire the models of the default one.
        is_own = isinstance(record.target.target, (ModuleRun, IrRun))
        yield (
            "    It also asks the last blessed model; one that is gone, damaged, or of other columns or "
            f"another label, cannot be compared{'.' if is_own else ':'}"
        )
        if not is_own:
            words = [*_workload_words(record), *_settings_words(record), "--clear"]
            clear = command("baseline", *words, output=record.output)
            yield f"    hint: {clear}   # or --set RUN, an earlier run whose model is there"
        if moved := _moved_baseline(record):
            link = shlex.join(["ln", "-s", str(Path(record.output).absolute()), str(moved)])
            yield f"    That model is looked for in {moved}; if the folder was moved from there, link it:"
            yield f"    hint: {link}"
    yield f"    log: {record.folder / node.log}"


def step_lines(record: RunRecord, node_id: str, *, stops: Mapping[str, Verdict]) -> Iterator[str]:
    """Yield why a node of a run in steps failed, or a gate's findings; nothing for other nodes."""
    node = record.node(node_id)
    if node.is_stop:
        yield f"Stopped: {node_id}"
        yield f"  {node_id}: {node.failure['message']}"
        yield from stop_lines(stops.get(node_id, Verdict()))
        yield from stop_hints(record, stops)
    elif node.state == "failed":
        yield f"Failed: {node_id}"
        yield from _failed_node(record, node)
        yield f"hint: {step_continuation(record, node_id)}"


def _stop(record: RunRecord, stops: Mapping[str, Verdict]) -> Iterator[str]:
    gates = [node for node in record.nodes if node.is_stop]
    done = _count(record, "complete", "cached")
    names = ", ".join(node.id for node in gates)
    yield f"Stopped: {names}, after {done} of {len(record.nodes)} nodes. What is finished is kept."
    for node in gates:
        yield f"  {node.id}: {node.failure['message']}"
        lines = list(stop_lines(stops.get(node.id, Verdict())))
        yield from lines[:_SHOWN_STOP_LINES]
        if len(lines) > _SHOWN_STOP_LINES:
            yield f"    the rest: {_command(record, 'show')}"
    yield from stop_hints(record, stops)


def refusal_lines(record: RunRecord, verdict: Verdict, width: int | None) -> Iterator[str]:
    """Yield why a model was not blessed, and the table of the checks; `width`: see `summary`."""
    reasons = record.blessing_reasons or ["the model was not blessed"]
    more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    yield f"{'Not blessed' if record.pushed else 'Not pushed'}: {reasons[0]}{more}."
    room = None if width is None else width - 2
    lines = check_table(verdict.get("checks", ()), limit=SHOWN_CHECKS, width=room)
    yield from (f"  {line}" for line in lines)


def stop_lines(verdict: Verdict) -> Iterator[str]:
    """Yield the lines of a gate that stopped the run, indented below the gate's name."""
    return (f"    {line}" for line in verdict.get("lines", ()))


def stop_hints(record: RunRecord, stops: Mapping[str, Verdict]) -> Iterator[str]:
    """Yield the commands that continue after a gate has stopped the run."""
    for verdict in stops.values():
        has_edits = any(finding.get("edits") for finding in verdict.get("findings", ()))
        if has_edits and not _is_rehearsal(record):  # a rehearsal uses a copy of the schema, as in an image
            yield f"hint: {_command(record, 'accept-schema')}   # shows the schema's edits, then asks"
        if name := verdict.get("override"):
            again = rerun_command(record, **{**record.overrides, name: WHY})
            yield f"hint: {again}   # lets it pass once, on the record"


def rerun_command(record: RunRecord, **overrides: str) -> str:
    """Return the command that starts the same run again in the same way: here, in Airflow, or as a rehearsal.

    Args:
        **overrides: reasons to let the run pass a gate despite its findings, by key of `OVERRIDES`.
    """
    if record.airflow:
        return f"{record.airflow} {shlex.quote(json.dumps(overrides, ensure_ascii=False))}"
    options = [word for name, why in overrides.items() for word in (OVERRIDES[name], why)]
    if _is_rehearsal(record):
        return " ".join([record.target.again, *map(shlex.quote, options)])
    return _begin_command(record, *(("step", "begin") if record.in_steps else ("run",)), options=options)


def run_command(record: RunRecord) -> str:
    """Return the command that runs the same workload with the same options on this machine."""
    return _begin_command(record, "run")


def _begin_command(record: RunRecord, *verb: str, options: Sequence[str] = ()) -> str:
    request = record.target
    words = _workload_words(record)
    if isinstance(request.target, ModuleRun) and not request.again:
        words += ["--pipeline", request.target.pipeline]
    words += _settings_words(record)
    words += options
    if verb == ("run",):  # without its --to, it would go on to the push
        words += ["--to", request.end] if request.end else []
        words += [word for argument in request.beam_args for word in ("--beam", argument)]
    return command(*verb, *words, output=record.output)


def step_continuation(record: RunRecord, *node_ids: str) -> str:
    """Return how to continue a run in steps after a fix, from the given nodes or all that failed."""
    if record.airflow:
        return "once it is fixed, clear the failed task and those after it in Airflow: the run continues"
    if not record.nodes:  # its `step begin` failed
        return rerun_command(record)
    failed = node_ids or [node.id for node in record.nodes if node.state == "failed"] or ["NODE"]
    return " && ".join(command("step", "node", record.run_id, each, output=record.output) for each in failed)


def _is_rehearsal(record: RunRecord) -> bool:
    return bool(record.target.again)


def _work_line(record: RunRecord) -> str:
    complete = [node for node in record.nodes if node.state == "complete"]
    ran = [node for node in complete if node.why != DONE_BEFORE]
    parts = [f"{len(ran)} ran"] if ran else []
    if len(complete) > len(ran):
        parts.append(f"{len(complete) - len(ran)} done before")
    if cached := _count(record, "cached"):
        parts.append(f"{cached} cached")
    if skipped := _count(record, "skipped"):
        parts.append(f"{skipped} skipped")
    slowest = max(ran, key=lambda node: node.wall_s, default=None)
    tail = f"; longest {slowest.id} {seconds(slowest.wall_s)}" if slowest else ""
    return f"{seconds(record.wall_s)}: {', '.join(parts)}{tail}"


def _next_step(record: RunRecord) -> str:
    if record.state == "stopped":
        return f"{_command(record, 'show')}   # every check, and the worst slices"
    return _command(record, "show")


def _workload_words(record: RunRecord) -> list[str]:
    """Return the workload file as an argument; empty for a custom pipeline."""
    path = Path(record.target.origin.path if record.target.origin else "")
    if not path.name:
        return []
    return [os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)]


def _settings_words(record: RunRecord) -> list[str]:
    """Return what a run was given besides the workload file, or a pipeline's parameters, as options."""
    origin = record.target.origin
    given = [f"{key}={value}" for key, value in record.target.parameters.items()]
    words = [word for each in (origin.sets if origin else given) for word in ("--set", each)]
    return [*words, "--profile", origin.profile] if origin and origin.profile else words


def _has_baseline(record: RunRecord) -> bool:
    return any(node.is_resolver and node.outputs_of("Model") for node in record.nodes)


def _moved_baseline(record: RunRecord) -> Path | None:
    """Return the output folder in which the baseline model was made, if it is not the run's."""
    models = (each for node in record.nodes if node.is_resolver for each in node.outputs_of("Model"))
    places = (Path(each["uri"]).parents for each in models if "://" not in each["uri"])
    # The path within the output folder: artifacts/PIPELINE/NODE/KEY/EXECUTION
    old = next((above[4] for above in places if len(above) > 5 and above[3].name == "artifacts"), None)
    return old if old != Path(record.output).absolute() else None


def _count(record: RunRecord, *states: str) -> int:
    return sum(node.state in states for node in record.nodes)


def resume_command(record: RunRecord) -> str:
    """Return the command that continues a run; for a rehearsal, the command that starts it again."""
    return record.target.again or _command(record, "resume")


def go_on_hints(record: RunRecord) -> Iterator[str]:
    """Yield the commands that continue an incomplete run.

    `resume` reads the workload file again but keeps the values of `--set`. As one of these may have caused
    the failure, the command that began the run is shown too, so that the value can be changed.
    """
    sets = record.target.origin.sets if record.target.origin else ()
    start = next(filter(None, (node.failure.get("start") for node in record.nodes)), "")
    if record.state == "failed" and start and _can_begin(record):
        run = _as_before(record, start=start)
        yield f"hint: {run}   # resume would fail the same way; this runs again from {start}"
    elif record.state != "failed" or not sets or _is_rehearsal(record):
        yield f"hint: {resume_command(record)}"
    else:
        run = _as_before(record, start=record.target.start)
        yield f"hint: {run}   # to change a --set; finished nodes are kept"
        yield f"hint: {resume_command(record)}   # keeps --set as it was"


def _can_begin(record: RunRecord) -> bool:
    """Return True if `run` can start the run: not a rehearsal, nor a pipeline passed by another program."""
    return not _is_rehearsal(record) and not isinstance(record.target.target, IrRun)


def _as_before(record: RunRecord, *, start: str | None) -> str:
    """Return the command that started the run, with `--from START`."""
    options = [word for name, why in record.overrides.items() for word in (OVERRIDES[name], why)]
    options += ["--from", start] if start else []
    return _begin_command(record, "run", options=options)


def _command(record: RunRecord, name: str) -> str:
    return command(name, record.run_id, output=record.output)
