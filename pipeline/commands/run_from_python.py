"""Runs a pipeline from a notebook or a test: `slipway.run(pipeline) -> RunResult`."""

import contextlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, Unpack

from slipway.pipeline.config import WorkloadChoice, read_assignments
from slipway.pipeline.config.workload_file import refuse_secrets
from slipway.pipeline.engine.processes.warm import Warm
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.plan.run_request import Options, Request, pipeline_request, workload_request
from slipway.pipeline.runs.outcome import read_stops, read_verdict
from slipway.pipeline.runs.record import NodeRecord, Pushed, RunRecord, RunState, file_name
from slipway.pipeline.screen.wording import summary
from slipway.pipeline.terminal.durations import seconds


class RunFailedError(PipelineError):
    """A run did not succeed; `result` has the details."""

    def __init__(self, message: str, *, hint: str, result: "RunResult") -> None:
        super().__init__(message, hint=hint)
        self.result = result


@dataclass(frozen=True)
class InlinePage:
    """A page that a notebook shows below the cell, isolated from the notebook's own page.

    Attributes:
        height_px: the height of the frame around the page.
    """

    html: str
    height_px: int

    def _repr_html_(self) -> str:
        """Return a sandboxed frame: neither page can access the other."""
        page = html.escape(self.html)
        return (
            f'<iframe title="report" sandbox="allow-scripts" srcdoc="{page}" '
            f'style="width:100%;height:{self.height_px}px;border:1px solid #888"></iframe>'
        )


@dataclass(frozen=True)
class RunResult:
    """The result of a run.

    Attributes:
        record: the content of `run.json`: nodes, times, metrics, blessing, pushed version.
    """

    record: RunRecord
    folder: Path

    @property
    def run_id(self) -> str:
        """The run's id, as accepted by `local_runner.py show`."""
        return self.record.run_id

    @property
    def state(self) -> RunState:
        """`complete`; `failed`: a node failed; `stopped`: a gate stopped it; `interrupted`."""
        return self.record.state

    @property
    def exit_code(self) -> int:
        """The exit code of the command line: 0 complete, 1 a node failed, 3 a gate stopped the run."""
        return self.record.exit_code or 0

    @property
    def ok(self) -> bool:
        """Whether the run completed."""
        return self.exit_code == 0

    @property
    def nodes(self) -> Mapping[str, NodeRecord]:
        """The nodes by id, in topological order."""
        return {node.id: node for node in self.record.nodes}

    @property
    def metrics(self) -> Mapping[str, float]:
        """The candidate's overall metrics by name; empty without a `ModelGate`."""
        return self.record.metrics

    @property
    def blessed(self) -> bool | None:
        """Whether the gate blessed the model; None without a gate."""
        return self.record.blessed

    @property
    def pushed(self) -> Pushed | None:
        """`{version, path}` of the served version; None if nothing was pushed."""
        return self.record.pushed

    def outputs(self, node_id: str) -> dict[str, list[str]]:
        """Return the URIs of a node's artifacts by output key.

        Raises:
            KeyError: the run has no such node.
        """
        made = self.record.node(node_id).outputs
        return {key: [artifact["uri"] for artifact in artifacts] for key, artifacts in made.items()}

    def log(self, node_id: str) -> Path:
        """Return the path of a node's log, which exists if the node ran.

        Raises:
            KeyError: the run has no such node.
        """
        return self.folder / "logs" / f"{file_name(self.record.node(node_id).id)}.log"

    def report(self, *, height_px: int = 700) -> InlinePage:
        """Return the run's report page, for a notebook to show.

        Args:
            height_px: the height of the frame around the page.

        Raises:
            FileNotFoundError: the run could not write its report page; its last lines of output say why.
        """
        return InlinePage((self.folder / "report.html").read_text(encoding="utf-8"), height_px)

    def _repr_html_(self) -> str:
        """Return the notebook's view: the outcome, the nodes, and the path of the full report."""
        lines = summary(self.record, stops=read_stops(self.record), verdict=read_verdict(self.record))
        outcome = "".join(
            f"<div>{html.escape(line)}</div>" for line in lines if not line.startswith("hint: ")
        )
        cells = ((node.id, node.state, seconds(node.wall_s or 0.0), node.why) for node in self.record.nodes)
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in cells
        )
        head = "<tr><th>node</th><th>state</th><th>took</th><th>why</th></tr>"
        page = self.folder / "report.html"
        link = f"<div>Report: {html.escape(str(page))}</div>" if page.exists() else ""
        return f"{outcome}<table><thead>{head}</thead><tbody>{rows}</tbody></table>{link}"

    def raise_for_state(self) -> Self:
        """Return this result if the run completed.

        Raises:
            RunFailedError: a node failed, a gate stopped the run, or it was interrupted.
        """
        if self.ok:
            return self
        first, *rest = summary(self.record)
        cause = next((line.strip() for line in rest if line.startswith("  ")), "")
        hint = next((line for line in reversed(rest) if line.startswith("hint: ")), "")
        raise RunFailedError(" ".join(filter(None, [first, cause])), hint=hint[6:], result=self)


def run(
    pipeline: Any,
    *,
    output: str | Path = "output",
    parameters: Mapping[str, object] | None = None,
    beam_args: Sequence[str] = (),
    quiet: bool = False,
    warm: Warm | None = None,
    **options: Unpack[Options],
) -> RunResult:
    """Run a pipeline as `local_runner.py run` does: with caching, and each node in a process, in parallel.

    Args:
        pipeline: a TFX pipeline; a function that returns one; `module:function`; a workload file, or its
            name in workloads/.
        output: the folder for all files that runs write; a relative path starts in the current folder.
        parameters: for a pipeline, its runtime parameters and the arguments of the function (those of
            `module:function` travel as text, and are read by its annotations: without one such as
            `list[str]`, a list arrives as JSON); for a workload, values that override the file:
            `{"train.epochs": 3}`.
        beam_args: extra options for every Beam component.
        quiet: whether to show no progress.
        warm: a process that has imported TFX, to be shared by several runs: `with Warm() as warm: ...`.
        **options: `start`, `end`: the nodes to start at and to stop after; `no_cache`: run every node;
            `jobs`: how many nodes run at once, >= 1; `fail_fast`: after a failure, also end the nodes that
            are still running.

    Returns:
        The result, also if a node failed; see `RunResult.raise_for_state`.

    Raises:
        UsageError: there is no such pipeline or workload, or it cannot be run; nothing was run.
        PipelineError: the engine itself could not continue.
    """
    from slipway.pipeline.commands.end_listeners import END_LISTENERS
    from slipway.pipeline.engine.local_run import execute
    from slipway.pipeline.runs.history import History
    from slipway.pipeline.screen.display import RunDisplay
    from slipway.pipeline.screen.run_display import stderr_display

    folder = Path(output).absolute()
    request = _request(pipeline, folder, dict(parameters or {}), beam_args, options)
    with contextlib.closing(RunDisplay() if quiet else stderr_display()) as display:
        record = execute(request, display=display, warm=warm, listeners=END_LISTENERS)
    return RunResult(record, History(folder).folder(record.run_id))


def _request(
    pipeline: Any, output: Path, parameters: dict[str, object], beam_args: Sequence[str], options: Options
) -> Request:
    if not isinstance(pipeline, (str, Path)) or ":" in str(pipeline):
        refuse_secrets(parameters, given_by="parameters: ")
    if isinstance(pipeline, str) and ":" in pipeline:
        texts = {key: _as_text(key, value) for key, value in parameters.items()}
        return pipeline_request(pipeline, parameters=texts, output=output, beam_args=beam_args, **options)
    if isinstance(pipeline, (str, Path)):
        # Values that override a workload file are parsed as YAML, and JSON is valid YAML.
        sets = read_assignments(f"{key}={_as_json(key, value)}" for key, value in parameters.items())
        chosen = WorkloadChoice(Path(pipeline), sets)
        return workload_request(chosen, output=output, beam_args=beam_args, **options)
    if not callable(pipeline) and not hasattr(pipeline, "pipeline_info"):
        raise UsageError(
            f"{type(pipeline).__name__} is not a pipeline.",
            hint="give a TFX Pipeline, a function that returns one, 'module:function' or a workload",
        )
    from slipway.pipeline.engine.tfx.handover import object_request

    return object_request(pipeline, output=output, parameters=parameters, beam_args=beam_args, **options)


def _as_text(key: str, value: object) -> str:
    """Return a value as text that is read by the function's annotation: JSON of a list, a set or a mapping.

    Raises:
        UsageError: a list, a set or a mapping holds what JSON cannot.
    """
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)  # records of equal runs are equal
    if not isinstance(value, (list, tuple, dict)):
        return str(value)
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"parameters[{key!r}] cannot be handed to the process that calls the function: {error}.",
            hint="give plain numbers and texts in it; or the function itself, not its name",
        ) from error


# A character beyond U+FFFF as JSON escapes it, in two parts; YAML takes such parts for no characters.
_IN_TWO_PARTS = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")


def _as_json(key: str, value: object) -> str:
    """Return a value as JSON that is YAML, too."""
    try:
        return _IN_TWO_PARTS.sub(_in_one, json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"parameters[{key!r}] is of the type {type(value).__name__}, and no workload file can hold it: "
            f"{error}.",
            hint="give a plain number, text, list or dict; of NumPy's: value.item(), value.tolist()",
        ) from error


def _in_one(parts: re.Match[str]) -> str:
    high, low = (int(part, 16) & 0x3FF for part in parts.groups())
    return f"\\U{0x10000 + (high << 10) + low:08x}"
