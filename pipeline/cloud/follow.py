"""Reports a service's run in the engine's terms: its record, its changes and its outcome."""

import re
from collections.abc import Iterator, Mapping, Set

from slipway.pipeline.cloud.complete_job import (
    component_of,
    executor_of,
    is_lookup_executor,
    producers_of,
    tasks_of,
)
from slipway.pipeline.cloud.container.kubeflow_input import ABSENT
from slipway.pipeline.cloud.pipeline_job import PipelineJob, PipelineSpec
from slipway.pipeline.cloud.services.service import JobState, TaskState
from slipway.pipeline.engine.run_end import conclude
from slipway.pipeline.exit_codes import DONE, FAILED, GATE_STOPPED
from slipway.pipeline.runs.outcome import read_verdict, read_verdicts
from slipway.pipeline.runs.record import Artifact, NodeRecord, RunRecord
from slipway.pipeline.runs.typed_json import typed
from slipway.pipeline.screen.wording import refusal_lines, result_lines
from slipway.pipeline.terminal.durations import seconds

# How services report the exit code of a container: Vertex AI, Kubernetes, and Kubeflow's launcher in Go.
_EXIT_CODE = re.compile(
    r"(?:non-zero status of|exit code:?|exit status|exited with code) (\d+)", re.IGNORECASE
)
# Where our error begins: at the last line that does; else behind the service's own words, in the same line. A
# message may have the word itself, such as "an sql error: ...".
_OURS, _QUOTED = re.compile(r"^error: ", re.MULTILINE), re.compile(r"(?<=[ \t])error: ")
_SHOWN_LINES = 12
_NOT_ENDED = ("waiting", "running")


def new_record(job: PipelineJob, *, run_id: str) -> RunRecord:
    """Return the record of a run that was just submitted: all tasks wait, in topological order."""
    spec = job["pipelineSpec"]
    needs = {
        name: {*task.get("dependentTasks", ()), *producers_of(task)} for name, task in tasks_of(spec).items()
    }
    nodes = [
        NodeRecord(
            id=name,
            type="Resolver" if _is_lookup(spec, name) else "",
            upstream=sorted(needs[name] & needs.keys()),
        )
        for name in _in_order(needs)
    ]
    return RunRecord(run_id=run_id, workload=spec["pipelineInfo"]["name"], nodes=nodes)


def _is_lookup(spec: PipelineSpec, name: str) -> bool:
    """Return True if a task only finds artifacts; one that consists of tasks itself does not."""
    return "executorLabel" in component_of(spec, name) and is_lookup_executor(executor_of(spec, name))


def update(record: RunRecord, state: JobState) -> list[NodeRecord]:
    """Update a record; return the nodes whose state changed.

    Tasks that the record does not have, such as the one for the whole pipeline, are ignored.
    """
    by_name = {node.id: node for node in record.nodes}
    changed = []
    for task in state.tasks:
        node = by_name.get(task.name)
        if node is None:
            continue
        node.wall_s = task.wall_s
        node.outputs = {
            key: [typed(Artifact, dict(each)) for each in made if ABSENT not in each.get("properties", {})]
            for key, made in task.outputs.items()
        }
        if node.state != task.state:
            node.state = task.state
            _explain(node, task)
            changed.append(node)
    return changed


def finish(record: RunRecord, state: JobState, *, wall_s: float) -> int:
    """Complete the record of a run that is over; return the exit code.

    Tasks that have not ended are skipped; if the service does not tell how they ended, they stay as they are.

    0: done; 1: a task failed, or the run was cancelled; 3: a gate stopped it, or did not bless the model.
    """
    record.wall_s = wall_s
    conclude(record)
    if state.phase != "complete" and record.exit_code == DONE:
        record.exit_code, record.state = FAILED, "failed"
    for node in record.nodes:
        if node.state in _NOT_ENDED and not state.is_outdated:
            node.state = "skipped"
    return record.exit_code or DONE


def ending(
    record: RunRecord, state: JobState, *, link: str, bless: str, width: int | None = None
) -> Iterator[str]:
    """Yield the last lines: the outcome, its causes, the numbers as after a local run, and the run's link.

    Args:
        record: the verdicts of its gates are reported if the gates' outputs are folders of this machine.
        bless: the command that runs the workload again and lets its model pass.
        width: the width of the screen in columns, which tables do not exceed; None means no limit.
    """
    took = seconds(record.wall_s)
    failed = [node for node in record.nodes if node.state == "failed"]
    names = ", ".join(node.id for node in failed)
    if record.exit_code == DONE:
        yield f"Done: {record.workload}, {took}"
    elif record.exit_code == GATE_STOPPED:
        yield f"Stopped: {names or 'the model is not blessed'}, {took}"
    else:
        yield f"{state.phase.capitalize()}: {names or state.error or 'no error message was reported'}, {took}"
    for node in failed:
        error = node.failure
        yield from (f"  {node.id}: {line}" for line in error["message"].splitlines()[:_SHOWN_LINES])
        if error.get("hint"):
            yield f"    hint: {error['hint']}"
    if state.is_outdated and (unknown := [node.id for node in record.nodes if node.state in _NOT_ENDED]):
        yield f"not told by the service: how {', '.join(unknown)} ended"
    verdict = read_verdict(record)
    if record.blessed is False:
        yield from refusal_lines(record, verdict, width)
        yield f"hint: {bless}   # blesses it, on the record"
    if record.pushed:
        yield f"Pushed: version {record.pushed['version']} -> {record.pushed['path']}"
    if not failed:
        yield from result_lines(record, verdict=verdict, passed=read_verdicts(record))
    yield f"hint: {link}   # logs and artifacts"


def read_failure(text: str) -> tuple[str, str, int | None]:
    """Extract a failed task's message, hint and exit code from a service's error.

    Services quote the last lines of the container's output. Our containers' output ends with `error: ...`,
    perhaps more lines, and `hint: ...`; another container's error is returned as the service reports it.
    """
    found = _EXIT_CODE.search(text)
    code = int(found[1]) if found else None
    begun = [*_OURS.finditer(text)][-1:] or [*_QUOTED.finditer(text)][:1]
    if not begun:
        return text.strip(), "", code
    message, _, hint = text[begun[0].end() :].partition("\nhint: ")
    hint = hint.splitlines()[0] if hint else ""
    return message.strip(), hint, code


def _explain(node: NodeRecord, task: TaskState) -> None:
    if task.state == "cached":
        node.why = "an equal task ran before"
    elif task.state == "failed":
        message, hint, code = read_failure(task.error)
        node.error = {"message": message, "hint": hint, "where": ""}
        node.is_stop = code == GATE_STOPPED
    elif task.state == "skipped":
        node.why = "its condition was not met"


def _in_order(needs: Mapping[str, Set[str]]) -> list[str]:
    """Return the names of tasks, each after those that it needs; otherwise by name."""
    ordered: list[str] = []
    while len(ordered) < len(needs):
        ready = sorted(name for name in needs if name not in ordered and needs[name] <= set(ordered))
        if not ready:  # a service would have rejected a cycle
            ready = sorted(set(needs) - set(ordered))
        ordered += ready
    return ordered
