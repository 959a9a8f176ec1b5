"""Decides which runs `gc` keeps, and why. Pure."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from slipway.pipeline.plan.resolver_keys import blessed_runs, key_of_models
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import WorkloadRun

IN_STEPS_DAYS = 7
"""How many days a run in steps is kept after the last change of its record."""

IN_STEPS = "in steps that go on"
"""Why such a run is kept."""


def kept_runs(
    runs: Sequence[RunRecord],
    *,
    keep: int,
    exists: Callable[[str], bool],
    retired: Callable[[str], Collection[str]] = lambda _workload: (),
    now: float = math.inf,
) -> dict[str, str]:
    """Return the runs to keep, and why. Pure.

    Args:
        runs: all runs, newest first.
        keep: how many of the newest runs of each pipeline to keep.
        exists: whether the path of a pushed version still exists.
        retired: the addresses of a workload's blessings that a user has retired.
        now: seconds since the epoch.

    Returns:
        Run id -> reason, in the order of `runs`.
    """
    reasons: dict[str, str] = {}
    for workload in {run.workload for run in runs}:
        own = [run for run in runs if run.workload == workload]
        reasons |= {
            run.run_id: f"has the latest result of {node}" for node, run in _latest_makers(own).items()
        }
        reasons |= {run.run_id: "made a baseline" for run in _baselines(own, workload, retired(workload))}
        reasons |= {run.run_id: "a rollback" for run in own if run.rollback}
        # A cached run names the version that an earlier run pushed, so the oldest run with a path made it.
        pushers = {run.pushed["path"]: run for run in own if run.pushed}
        reasons |= {
            run.run_id: f"pushed version {Path(path).name}" for path, run in pushers.items() if exists(path)
        }
    reasons |= {run.run_id: "among the newest" for run in newest(runs, keep)}
    reasons |= {run.run_id: IN_STEPS for run in runs if _goes_on(run, now)}
    return {run.run_id: reasons[run.run_id] for run in runs if run.run_id in reasons}


def _goes_on(run: RunRecord, now: float) -> bool:
    """Return True if another program is still taking a run's steps, as far as is known.

    Between two steps no process holds a lock, whoever takes them may wait long before the next, and one that
    was given up is never closed.
    """
    changed = started(run) + run.wall_s
    return run.in_steps and run.state == "running" and now - changed < IN_STEPS_DAYS * 86_400


def started(run: RunRecord) -> float:
    """Return when a run began, in seconds since the epoch."""
    return datetime.fromisoformat(run.started_at).timestamp()


def newest(runs: Iterable[RunRecord], keep: int) -> Iterator[RunRecord]:
    """Yield the newest `keep` runs of each pipeline, without rollbacks; `runs` is sorted newest first."""
    seen: Counter[str] = Counter()
    for run in runs:
        if run.rollback:
            continue
        seen[run.workload] += 1
        if seen[run.workload] <= keep:
            yield run


def _baselines(runs: Iterable[RunRecord], workload: str, retired: Collection[str]) -> Iterator[RunRecord]:
    """Yield the newest blessed runs of two models, and the blessed run of the most recently made model.

    Two, because `baseline_key` takes the latest model other than the candidate. TFX's resolver takes the
    model with the highest id, which is a third one if a setting was changed back and an earlier model was
    blessed again.
    """
    seen: set[str] = set()
    every = list(runs)
    late = [run for run in every if run.resumed or run.in_steps]  # perhaps; here, all have been read
    blessed = list(blessed_runs(every, workload=workload, retired=retired, late=late))
    if blessed:
        yield max(blessed, key=_made_by)
    for run in blessed:
        key = key_of_models(run) or run.run_id  # nodes of a rehearsal have no cache keys
        if key not in seen and len(seen) < 2:
            seen.add(key)
            yield run


def _made_by(run: RunRecord) -> int:
    """Return the id of the execution that made a run's model, from the model's URI; 0 if unknown."""
    ends = (Path(model["uri"]).name for _, model in run.outputs_of("Model"))
    return max((int(end) for end in ends if end.isdecimal()), default=0)


def _latest_makers(runs: Iterable[RunRecord]) -> dict[str, RunRecord]:
    """Return, for each node of a custom pipeline with a Resolver, the run that has the node's latest result.

    Such a Resolver may look up anything, such as the latest model to train further; the Resolver of a
    workload looks up a blessed model.
    """
    latest: dict[str, tuple[int, RunRecord]] = {}
    for run in runs:
        is_workload = isinstance(run.target.target, WorkloadRun)
        if is_workload or not any(node.type == "Resolver" for node in run.nodes):
            continue
        for node in run.nodes:
            if node.execution_id is not None and node.execution_id > latest.get(node.id, (0, run))[0]:
                latest[node.id] = (node.execution_id, run)
    return {node_id: run for node_id, (_, run) in latest.items()}


def is_resumable(run: RunRecord) -> bool:
    """Return True if `resume` can continue the run.

    No engine is active, so a run marked as running was killed.
    """
    return run.state not in ("complete", "stopped")
