"""The head of a run's report page: the verdict in one sentence, the key numbers, the next steps."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slipway.components.metrics.definitions import METRICS, plain_name
from slipway.components.model_gate.verdict import OVERALL
from slipway.pipeline.runs.outcome import read_stops, read_verdict
from slipway.pipeline.runs.record import OVERRIDES, RunRecord, Training, Verdict
from slipway.pipeline.screen.wording import DONE_BEFORE, metrics_line, rollback_line, summary
from slipway.pipeline.terminal.durations import seconds

COUNT = "example_count"
"""The Evaluator's name for the number of rows that a metric was computed from."""

_SHOWN_REASON = 160


@dataclass(frozen=True)
class Fact:
    """One key number in the head of the report page.

    Attributes:
        value: the value with its unit, as text.
        note: what the value is compared with; may be empty.
        is_better: whether the change is an improvement; None if unchanged or unknown.
        interval: the confidence interval, as text; empty if it is not known.
    """

    name: str
    value: str
    note: str = ""
    is_better: bool | None = None
    interval: str = ""


@dataclass(frozen=True)
class Head:
    """The head of a run's report page.

    Attributes:
        state: the run's state, one of `RunState`.
        started_at: ISO 8601, UTC.
        verdict: the outcome, in one sentence.
        lines: the rest of the summary, as the terminal shows it.
        overrides: (option, reason) for each gate that was overridden in this run.
    """

    workload: str
    run_id: str
    state: str
    started_at: str
    wall: str
    verdict: str
    lines: tuple[str, ...]
    facts: tuple[Fact, ...]
    overrides: tuple[tuple[str, str], ...]


def head(record: RunRecord, *, cost: Fact | None = None) -> Head:
    """Return the head of a run's report page.

    Args:
        cost: the estimated cost of the training, if it is known.

    Raises:
        OSError, ValueError: a verdict's file cannot be read.
    """
    verdict = read_verdict(record)
    lines = _lines(record, verdict)
    return Head(
        workload=record.workload,
        run_id=record.run_id,
        state=record.state,
        started_at=record.started_at,
        wall=seconds(record.wall_s),
        verdict=_without_path(lines[0], record),
        lines=tuple(lines[1:]),
        facts=(
            *metric_facts(
                record.metrics,
                verdict.get("baseline_metrics", {}),
                verdict.get("intervals", {}).get(OVERALL, {}),
                effective_rows=verdict.get("telling_rows", {}).get(OVERALL),
            ),
            *_run_facts(record),
            *filter(None, [cost]),
        ),
        overrides=tuple((OVERRIDES.get(name, name), why) for name, why in record.overrides.items()),
    )


def _lines(record: RunRecord, verdict: Verdict) -> list[str]:
    if record.rollback:
        return [rollback_line(record)]
    if record.state == "running":
        done = sum(node.state in ("complete", "cached") for node in record.nodes)
        return [f"Still running. {done} of {len(record.nodes)} nodes are done and kept."]
    return list(summary(record, stops=read_stops(record), verdict=verdict))


def _without_path(line: str, record: RunRecord) -> str:
    """Return the headline without the push destination, which has its own tile and would break the line."""
    return line.removesuffix(f" -> {record.pushed['path']}") if record.pushed else line


def metric_facts(
    metrics: Mapping[str, float],
    baseline: Mapping[str, float],
    intervals: Mapping[str, Sequence[float]] | None = None,
    *,
    effective_rows: float | None = None,
) -> list[Fact]:
    """Return the candidate's metrics, each with its change against the last blessed model on the same rows.

    Args:
        baseline: the metrics of the last blessed model; may be empty.
        intervals: metric -> confidence bounds, for metrics that have them.
        effective_rows: the effective number of rows, given their weights; None if it is the number of rows.
    """
    facts = []
    bounds = {name: interval(each) for name, each in (intervals or {}).items()}
    for name, value in metrics.items():
        if name == COUNT:
            continue
        before = baseline.get(name)
        if before is None:
            note = "no blessed model to compare with"
            facts.append(Fact(name, f"{value:.4g}", note, interval=bounds.get(name, "")))
            continue
        change = value - before
        better = is_better(name, change)
        facts.append(Fact(name, f"{value:.4g}", _change(change), better, bounds.get(name, "")))
    if COUNT in metrics:
        worth = "" if effective_rows is None else f"worth {effective_rows:,.0f} by their weights"
        facts.append(Fact("rows evaluated", f"{metrics[COUNT]:,.0f}", worth))
    return facts


def interval(bounds: Sequence[float]) -> str:
    """Format the lower and upper confidence bound of a value."""
    return "[{:.4g}, {:.4g}]".format(*bounds)


def _change(change: float) -> str:
    if change == 0:
        return "same as the last blessed model"
    return f"{change:+.4g} from the last blessed model"


def is_better(name: str, change: float) -> bool | None:
    """Whether the change of a metric is an improvement; None if unchanged or unknown."""
    known = METRICS.get(plain_name(name))
    if known is None or known.better is None or change == 0 or math.isnan(change):
        return None
    return known.is_better(change, than=0)


def _run_facts(record: RunRecord) -> list[Fact]:
    # The time is that of the last attempt, so what was done before it is counted by itself.
    words = ["done before" if node.why == DONE_BEFORE else node.state for node in record.nodes]
    told = {"complete": "ran", **{each: each for each in ("done before", "cached", "failed", "skipped")}}
    counts = [f"{words.count(state)} {word}" for state, word in told.items() if state in words]
    facts = [Fact("wall time", seconds(record.wall_s), ", ".join(counts))]
    if record.pushed:
        facts.append(Fact("pushed version", str(record.pushed["version"]), str(record.pushed["path"])))
    goodput = _goodput(record.training)
    if goodput is not None:
        facts.append(Fact("training goodput", f"{goodput:.0%}", "useful steps as a share of its wall time"))
    return facts


def _goodput(training: Training) -> float | None:
    time: object = training.get("time")  # a Trainer of one's own may report anything
    value = time.get("goodput") if isinstance(time, dict) else None
    return float(value) if isinstance(value, int | float) else None


def one_line(record: RunRecord) -> str:
    """Return the outcome of a run on one line, for a list of runs."""
    if record.rollback:
        return rollback_line(record)
    pushed = f"pushed {record.pushed['version']}" if record.pushed else ""
    return ", ".join(filter(None, [what_failed(record), metrics_line(record.metrics), pushed]))


def what_failed(record: RunRecord) -> str:
    """Return the first failed node, if one did, and the first line of the cause; empty if nothing failed."""
    failed = next((node for node in record.nodes if node.state == "failed"), None)
    cause = failed.failure if failed else record.error
    if cause is None:
        return ""
    why = cause["message"].partition("\n")[0]
    shown = f"{why[:_SHOWN_REASON]}{'...' if len(why) > _SHOWN_REASON else ''}"
    return f"{failed.id}: {shown}" if failed else shown
