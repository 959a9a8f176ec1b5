"""Finds the local results to compare a rehearsal with, and reports the comparison."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from slipway.components.errors import SlipwayError
from slipway.pipeline.cloud.rehearsal.output_comparison import Comparison, compare_outputs
from slipway.pipeline.engine.plan_without_run import plan_kept
from slipway.pipeline.plan.run_request import Request
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import ModuleRun
from slipway.pipeline.terminal.invocation import command


@dataclass
class Compared:
    """A rehearsal compared with the local results of the same code, data and settings.

    Attributes:
        comparisons: one for each output that was compared.
        without_local: why a node was not compared, by node id.
        without_rule: the outputs whose types cannot be compared here, each with its type.
        hint: the command that makes a local result, if there is none at all.
        why_not: why nothing was compared, if the pipeline cannot be planned for a local run.
    """

    comparisons: list[Comparison] = field(default_factory=list)
    without_local: dict[str, str] = field(default_factory=dict)
    without_rule: list[str] = field(default_factory=list)
    hint: str = ""
    why_not: str = ""

    @property
    def differs(self) -> bool:
        """Whether any content differs."""
        return any(comparison.differences for comparison in self.comparisons)

    def lines(self) -> Iterator[str]:
        """Yield the report: first the differences, then the equal outputs, then what was not compared."""
        if self.hint:
            yield "Not compared with a local run: there is none."
            yield f"hint: {self.hint}"
            return
        if self.why_not:
            yield f"Not compared with a local run, which would fail: {self.why_not}"
        for comparison in self.comparisons:
            for difference in comparison.differences:
                yield f"Differs from the local run: {comparison.node}.{comparison.output}: {difference}"
        if equal := [f"{c.node}.{c.output}" for c in self.comparisons if not (c.differences or c.unread)]:
            yield f"Equal to the local run in content: {', '.join(equal)}"
        for each in self.comparisons:
            if each.unread:
                yield f"Not compared: {each.node}.{each.output}; not kept as TFX does ({each.unread})"
        if self.without_rule:
            yield f"Not compared, because there is no rule for their types: {', '.join(self.without_rule)}"
        for node, why in self.without_local.items():
            yield f"Not compared: {node}; no local result of the same code, data and settings ({why})"


def compare_with_local(request: Request, rehearsal: RunRecord) -> Compared:
    """Compare a rehearsal with the local engine's results for the same code, data and settings.

    Args:
        request: the request for a local run of the workload, which decides which results belong to it.
    """
    compared = Compared()
    if not any(_is_of(run, request) for run in History(request.output).runs()):
        compared.hint = command("run", *_words(request), output=request.output)
        return compared
    try:
        decisions = plan_kept(request, History(request.output)).decisions
    except SlipwayError as error:
        if request.is_workload:
            raise
        compared.why_not = str(error.message)  # TFX can compile for a service what its own runner rejects
        return compared
    for node in rehearsal.nodes:
        if node.id not in decisions or not node.is_done or node.is_resolver:
            continue
        decision = decisions[node.id]
        if decision.source is None:
            compared.without_local[node.id] = decision.why
        else:
            found = list(compare_outputs(node.id, decision.source["outputs"], node.outputs))
            compared.comparisons += found
            if not request.is_workload:  # for a workload, these outputs are always the same
                keys = node.outputs.keys() - {each.output for each in found}
                compared.without_rule += [
                    f"{node.id}.{key} ({node.outputs[key][0]['type']})"
                    for key in sorted(keys)
                    if node.outputs[key]
                ]
    return compared


def _is_of(run: RunRecord, request: Request) -> bool:
    """Return True if a local run is of the rehearsed pipeline; a `--pipeline` run has the pipeline's name."""
    return request.workload in (run.workload, run.target.workload)


def _words(request: Request) -> Iterator[str]:
    """Yield the arguments with which `run` runs the same pipeline."""
    if not isinstance(request.target, ModuleRun):
        yield request.workload
        return
    yield from ("--pipeline", request.target.pipeline)
    for name, value in request.parameters.items():
        yield from ("--set", f"{name}={value}")
    for arg in request.beam_args:
        yield from ("--beam", arg)
