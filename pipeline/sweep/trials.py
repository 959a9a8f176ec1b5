"""Runs a sweep's trials as ordinary runs up to the Evaluator, which push nothing."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Protocol

from slipway.components.counted_words import counted
from slipway.pipeline.engine.failure import is_full_disk
from slipway.pipeline.engine.run_end import LateInterrupt
from slipway.pipeline.engine.scheduler import Hopeless
from slipway.pipeline.errors import ConfigError, PipelineError
from slipway.pipeline.exit_codes import DONE, FAILED, INTERRUPTED
from slipway.pipeline.runs.comparison import number, short_names
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.sweep.pruning import Watch, judges_by_lower
from slipway.pipeline.sweep.record import Sweep, Trial, finite
from slipway.pipeline.sweep.search import Tried, propose
from slipway.pipeline.sweep.space import Space
from slipway.pipeline.terminal.durations import seconds
from slipway.pipeline.terminal.invocation import command

# Trials end here, because later nodes would bless models and so change the baseline of the next model.
LAST_NODE = "Evaluator"


class RunTrial(Protocol):
    """Runs a workload with additional `--set`s up to `LAST_NODE`."""

    def __call__(
        self, sets: tuple[str, ...], *, resumed: str, begun: Callable[[str], None], hopeless: Hopeless
    ) -> RunRecord:
        """Run a trial to its end and return the record of the run.

        Args:
            resumed: the id of the run to continue; empty for a new run.
            begun: called with the run's id when the run begins.
            hopeless: says which running nodes to end early; see `Engine`.
        """


@dataclass(frozen=True)
class Trials:
    """Runs the trials of a sweep.

    Attributes:
        sweep: the sweep's record, saved after each change.
        first_seed: the `train.seed` of the search's trials.
        at_once: how many trials run at once. The first runs alone: it makes what the others share, and shows
            whether the workload runs at all.
        give_up: ends the trials that are running, because another could not be run.
    """

    sweep: Sweep
    space: Space
    run: RunTrial
    first_seed: int
    tell: Callable[[str], None]
    at_once: int = 1
    give_up: Callable[[], None] = lambda: None
    _saving: threading.Lock = field(default_factory=threading.Lock)

    def carry_on(self) -> int:
        """Run the remaining trials; return the exit code.

        Raises:
            PipelineError: the first run failed, or one for want of room on the disk, so the others would fail
                too.
            UsageError: a trial could not begin, for a reason other than its settings.
        """
        left = [each for each in self.sweep.done if each.state == "running"]
        if not (self._one_by_one(left) if self.at_once == 1 else self._side_by_side(left)):
            return INTERRUPTED
        return DONE if self.sweep.best else FAILED

    def _one_by_one(self, left: list[Trial]) -> bool:
        """Run the trials; return False if the user interrupted one."""
        while trial := self._next(left):
            if not self._try(trial):
                return False
        return True

    def _side_by_side(self, left: list[Trial]) -> bool:
        is_alone, goes_on = True, True
        running: dict[Future[bool], Trial] = {}
        with ThreadPoolExecutor(self.at_once) as threads:
            try:
                while True:
                    limit = (1 if is_alone else self.at_once) if goes_on else 0
                    while len(running) < limit and (trial := self._next(left)):
                        running[threads.submit(self._try, trial)] = trial
                    if not running:
                        return goes_on
                    for ended in wait(running, return_when=FIRST_COMPLETED).done:
                        trial = running.pop(ended)
                        goes_on = ended.result() and goes_on
                        is_alone = is_alone and (trial.repeats is not None or not trial.run_id)
            except BaseException:
                self.give_up()
                raise

    def _next(self, left: list[Trial]) -> Trial | None:
        """Return the next trial, which is in the record; None if there is none, or none yet.

        Args:
            left: trials that were interrupted; those that are returned are removed.
        """
        sweep = self.sweep
        if left:
            return left.pop(0)
        if len(sweep.searched) < sweep.trials:
            return self._begin(self._proposed())
        seeds = 1 + sum(trial.seed is not None for trial in sweep.done)
        is_over = all(trial.state != "running" for trial in sweep.searched)
        if is_over and (best := sweep.best) and seeds < sweep.seeds:
            return self._begin(Trial(dict(best.params), seed=self.first_seed + seeds))
        return None

    def _proposed(self) -> Trial:
        sweep = self.sweep
        lower = sweep.is_lower_better
        sign = 1 if judges_by_lower(sweep) == lower else -1
        earlier = [
            Tried(
                trial.params,
                trial.value,
                {at: sign * value for at, value in trial.curve} if trial.state == "pruned" else None,
                is_running=trial.state == "running",
            )
            for trial in sweep.searched
        ]
        params = propose(self.space, sweep.method, earlier, is_lower_better=lower, seed=sweep.seed)
        return Trial(dict(params))

    def _begin(self, trial: Trial) -> Trial:
        done = self.sweep.done
        done.append(trial)
        for at, other in enumerate(done[:-1], 1):
            if (other.params, other.seed) == (trial.params, trial.seed) and other.state != "running":
                trial.repeats = other.repeats or at
                trial.run_id, trial.state, trial.value = other.run_id, other.state, other.value
                trial.why, trial.curve = other.why, other.curve
                break
        self._save()
        return trial

    def _save(self) -> None:
        with self._saving:  # a thread must not replace the record by an older one
            self.sweep.save()

    def _try(self, trial: Trial) -> bool:
        """Run a trial; return False if the user interrupted it."""
        sweep = self.sweep
        # Not `index`: of two trials that begin side by side with the same settings, it would find the first.
        at = next(at for at, each in enumerate(sweep.done, 1) if each is trial)
        name = f"trial {at}/{sweep.trials}" if trial.seed is None else f"seed {trial.seed}"
        shown = in_words(trial)
        if trial.repeats is not None:
            self.tell(f"{name}  the same settings as trial {trial.repeats}  {shown}")
            return True
        began, watch = time.monotonic(), Watch(sweep, trial)

        def begun(run_id: str) -> None:
            trial.run_id = run_id
            self._save()

        try:
            record = self.run(sweep.settings(trial), resumed=trial.run_id, begun=begun, hopeless=watch)
        except ConfigError as error:
            # Values that are valid on their own may contradict each other; other trials may still be valid.
            trial.state, trial.why = "failed", "; ".join(error.message.splitlines())
            self._save()
            self.tell(f"{name}  refused: {trial.why}  {shown}")
            return True
        except LateInterrupt:  # the run is over, and its nodes are in the cache when the sweep goes on
            return False
        if record.state == "interrupted":
            return False
        if full := _full_disk(record):  # the trial stays as it is, and is run when the sweep goes on
            raise PipelineError(f"{name}: {full}", hint="make room on the disk")
        trial.run_id, trial.wall_s = record.run_id, round(time.monotonic() - began, 3)
        watch.ends(record)
        if record.state == "pruned":
            trial.state, trial.why = "pruned", watch.why
            said = f"pruned {trial.why}"
        elif record.state == "complete" and (value := finite(record.metrics.get(sweep.by))) is not None:
            trial.state, trial.value = "complete", value
            said = f"{sweep.by} {number(value)}"
        else:
            trial.state, trial.why = "failed", _why(record, sweep.by)
            said = f"failed: {trial.why}"
        self._save()
        best = ", the best so far" if trial is sweep.best else ""
        self.tell(f"{name}  {said}{best}  {seconds(trial.wall_s)}  {shown}")
        if trial.state == "failed" and not any(other.run_id for other in sweep.done if other is not trial):
            raise PipelineError(
                f"The first trial failed: {trial.why}",
                hint=f"{command('show', record.run_id, output=sweep.output)}; then start the sweep again",
            )
        return True


def in_words(trial: Trial) -> str:
    """Return a trial's values as text, each with the short name of its key."""
    names = short_names(trial.params)
    return ", ".join(f"{names[key]} {value}" for key, value in trial.params.items())


def summary(sweep: Sweep) -> list[str]:
    """Return the last lines: the best trial, its spread over seeds, and the number of runs."""
    best = sweep.best
    if best is None or best.value is None:
        return [f"No trial of {len(sweep.searched)} has a value of {sweep.by}."]
    at = sweep.done.index(best) + 1
    lines = [f"Best: trial {at}, run {best.run_id}: {sweep.by} {number(best.value)} with {in_words(best)}"]
    if spread := sweep.spread:
        mean, deviation, count = spread
        lines.append(f"Over {count} seeds: {number(mean)}, standard deviation {deviation:.2g}")
    own = [trial for trial in sweep.done if trial.repeats is None]
    ran = [trial for trial in own if trial.run_id]
    seeds = sum(trial.seed is not None for trial in ran)
    apart = f" and {counted(seeds, 'run')} with other seeds" if seeds else ""
    failed, pruned = (sum(trial.state == state for trial in own) for state in ("failed", "pruned"))
    ended = f"{failed} failed" + (f", {pruned} pruned" if pruned else "")
    trials = counted(len(sweep.searched), "trial")
    lines.append(f"{counted(len(ran) - seeds, 'run')} of {trials}{apart}, {ended}; nothing was pushed")
    return lines


def progress(sweep: Sweep) -> str:
    """Return, as text, how many trials have ended, and how many repeats of the best with other seeds."""
    ended = [trial for trial in sweep.done if trial.state != "running"]
    seeds = sum(trial.seed is not None for trial in ended)
    apart = f" and {seeds} of {sweep.seeds - 1} more seeds" if len(sweep.done) > len(sweep.searched) else ""
    return f"{len(ended) - seeds} of {counted(sweep.trials, 'trial')}{apart}"


def _why(record: RunRecord, by: str) -> str:
    if failed := _failures(record):
        return failed[0]
    return f"its run is {record.state}, and has no {by} that is a number"


def _full_disk(record: RunRecord) -> str:
    """Return the failure of a node by a full disk, which no settings are to blame for; empty if none is."""
    return next((each for each in _failures(record) if is_full_disk(each)), "")


def _failures(record: RunRecord) -> list[str]:
    failed = [node for node in record.nodes if node.state == "failed"]
    return [
        f"{node.id}: {next(iter(node.failure['message'].splitlines()), 'gives no reason')}" for node in failed
    ]
