"""Follows the epochs of a running training, and decides whether it is hopeless."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slipway.components.event_lines import read_event
from slipway.components.metrics.better_side import is_lower_better
from slipway.pipeline.report.artifacts import first_json
from slipway.pipeline.runs.comparison import number
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.sweep.record import Sweep, Trial
from slipway.pipeline.sweep.search import Curve, optuna_for

FEWEST = 5
"""A training is compared with at least this many finished ones; Optuna's default."""
_TRAINER = "Trainer"
_HELD_OUT = "val_"  # Keras' prefix of a metric on the eval split


@dataclass
class TrainingLog:
    """The epochs that a training has reported in the log of its node, which is read as it grows.

    Attributes:
        epochs: the metrics of each epoch, by number. An epoch that was trained again replaces the earlier
            one and all after it.
        planned: the number of epochs that the training is to have; 0 before the first has ended.
    """

    path: Path
    epochs: dict[int, Mapping[str, float]] = field(default_factory=dict)
    planned: int = 0
    _read_bytes: int = 0

    def read(self) -> bool:
        """Read what was added; return True if an epoch was."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(self._read_bytes)
                # The last line may still be incomplete.
                whole, newline, _ = stream.read().rpartition(b"\n")
        except FileNotFoundError:
            return False
        self._read_bytes += len(whole) + len(newline)
        found = False
        for line in whole.decode(errors="replace").splitlines():
            event = read_event(line)
            if event is not None and event["event"] == "epoch":
                found = self._add(event) or found
        return found

    def _add(self, event: Mapping[str, Any]) -> bool:
        try:
            at, self.planned, metrics = int(event["epoch"]), int(event["epochs"]), dict(event["metrics"])
        except (KeyError, TypeError, ValueError, OverflowError):  # printed by someone else
            return False
        self.epochs = {epoch: known for epoch, known in self.epochs.items() if epoch < at} | {at: metrics}
        return True


def judged_metric(by: str, measured: Sequence[str]) -> str:
    """Return the metric of the epochs that says most about a sweep's metric; empty if none does.

    Args:
        measured: the metrics of an epoch, by Keras name.
    """
    return next((name for name in (_HELD_OUT + by, f"{_HELD_OUT}loss") if name in measured), "")


def curve_of(epochs: Mapping[int, Mapping[str, float]], metric: str) -> dict[int, float]:
    """Return a metric over the epochs, without those in which it is no finite number."""
    return {
        at: float(metrics[metric])
        for at, metrics in epochs.items()
        if isinstance(metrics.get(metric), (int, float)) and math.isfinite(metrics[metric])
    }


def falls(metric: str) -> bool:
    """Return True if a lower value of a metric of the epochs, by Keras name, is better."""
    return is_lower_better(metric.removeprefix(_HELD_OUT))


def hopeless(
    curve: Curve, finished: Sequence[Curve], *, metric: str, after: int, is_lower: bool | None = None
) -> str:
    """Return why a training is not worth finishing; empty if it may be.

    It is not if its best epoch is worse than the median of the finished trainings at its latest epoch
    (Optuna's MedianPruner).

    Args:
        curve: of the training, up to now.
        finished: of the trainings that were not ended early.
        metric: what the curves show, by Keras name.
        after: the first epoch after which a training may be ended, >= 1.
        is_lower: whether a lower value of the metric is better; None: as its name says.

    Raises:
        UsageError: Optuna is not installed.
    """
    at = max(curve, default=0)
    there = [each[at] for each in finished if at in each]
    if len(there) < FEWEST:
        return ""
    optuna = optuna_for("--prune")
    is_lower = falls(metric) if is_lower is None else is_lower
    study = optuna.create_study(direction="minimize" if is_lower else "maximize")
    for each in finished:
        study.add_trial(optuna.trial.create_trial(value=0.0, intermediate_values=dict(each)))
    running = optuna.trial.create_trial(
        state=optuna.trial.TrialState.RUNNING, intermediate_values=dict(curve)
    )
    pruner = optuna.pruners.MedianPruner(n_startup_trials=FEWEST, n_warmup_steps=after, n_min_trials=FEWEST)
    if not pruner.prune(study, running):
        return ""
    best = min(curve.values()) if is_lower else max(curve.values())
    return (
        f"after epoch {at}, {metric} is {number(best)} at best; "
        f"the median of {len(there)} trials is {number(statistics.median(there))} there"
    )


def judges_by_lower(sweep: Sweep) -> bool:
    """Return True if a lower value of the metric that a sweep prunes by is better."""
    own = sweep.prune_by == _HELD_OUT + sweep.by
    return sweep.is_lower_better if own else falls(sweep.prune_by)


@dataclass
class Watch:
    """Follows the training of one trial, and says when it is hopeless.

    Trials that repeat the best settings with another seed are not followed: their spread needs all of them.

    Attributes:
        why: why the training was said to be hopeless; empty if it was not.
    """

    sweep: Sweep
    trial: Trial
    why: str = ""
    _log: TrainingLog | None = None

    @property
    def _is_on(self) -> bool:
        return self.sweep.prune_after is not None and self.trial.seed is None

    def __call__(self, node: NodeRecord) -> str:
        """Return why a running node is not worth finishing; empty if it may be."""
        sweep = self.sweep
        if not self._is_on or node.id != _TRAINER:
            return ""
        log = self._log = self._log or TrainingLog(sweep.output / "runs" / self.trial.run_id / node.log)
        if not log.read():
            return ""
        self._keep(log.epochs)
        if max(log.epochs) >= log.planned:  # nothing is left to save
            return ""
        finished = [
            dict(each.curve) for each in sweep.searched if each.state == "complete" and each.repeats is None
        ]
        after = sweep.prune_after or 1
        self.why = hopeless(
            dict(self.trial.curve),
            finished,
            metric=sweep.prune_by,
            after=after,
            is_lower=judges_by_lower(sweep),
        )
        return self.why

    def ends(self, record: RunRecord) -> None:
        """Keep the curve of a complete run: the training may be cached, so that it wrote no log."""
        if not self._is_on or record.state != "complete":
            return
        try:
            told = first_json(record, "ModelRun", "history.json").get("epochs", [])
            self._keep({int(epoch["epoch"]): epoch for epoch in told})
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return  # another Trainer's file: the log is all that is known

    def _keep(self, epochs: Mapping[int, Mapping[str, float]]) -> None:
        sweep = self.sweep
        if not sweep.prune_by:
            sweep.prune_by = judged_metric(sweep.by, [name for each in epochs.values() for name in each])
        self.trial.curve = list(curve_of(epochs, sweep.prune_by).items())
