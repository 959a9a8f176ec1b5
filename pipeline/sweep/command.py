"""The command `sweep`: checks its options, runs the trials, and writes the page."""

import contextlib
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path

from slipway.components.counted_words import counted
from slipway.components.metrics.better_side import BOUNDS, is_lower_better
from slipway.components.metrics.definitions import METRICS, plain_name
from slipway.components.nearest import nearest
from slipway.components.project import PROJECT_ROOT
from slipway.components.trainer.devices.evidence import find_evidence
from slipway.pipeline.config import WorkloadChoice, WorkloadConfig, read_assignments
from slipway.pipeline.engine.concurrent_runs import Beside, side_by_side
from slipway.pipeline.engine.local_run import execute
from slipway.pipeline.engine.processes.warm import Warm, WarmProcess
from slipway.pipeline.engine.run_end import Listener
from slipway.pipeline.engine.scheduler import Hopeless
from slipway.pipeline.errors import ConfigError, DataSourceError, PipelineError, UsageError, raised_as
from slipway.pipeline.exit_codes import INTERRUPTED
from slipway.pipeline.plan.run_request import workload_request
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import locked
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.sweep.basis import CODE, basis, changed_since, data_of, in_project
from slipway.pipeline.sweep.page import write_page
from slipway.pipeline.sweep.record import Sweep, new_sweep_id, read_sweep
from slipway.pipeline.sweep.search import choose, optuna_for
from slipway.pipeline.sweep.space import Space, read_space
from slipway.pipeline.sweep.trials import LAST_NODE, Trials, progress, summary
from slipway.pipeline.terminal.invocation import command

# The sections of a workload file that say what is read.
_OF_THE_DATA = ("data", "schema")
# The states of a run that was cut short. A pruned one is among them only if the sweep was killed at once.
_CUT_SHORT = ("running", "interrupted", "killed", "pruned")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of a new sweep, described in `Sweep`; None stands for the default."""

    sets: Sequence[str] = ()
    profile: str | None = None
    method: str | None = None
    trials: int | None = None
    by: str | None = None
    seed: int = 0
    seeds: int = 1
    prune: int | None = None


def begin(workload: Path, output: Path, asked: Asked) -> Sweep:
    """Return a new sweep after all checks that need no run.

    Raises:
        UsageError: the options contradict each other.
        ConfigError: the workload does not accept one of the values.
    """
    space = read_space(asked.sets)
    method, trials = choose(space, method=asked.method, trials=asked.trials)
    # All settings of a grid; of a search, each value and the ends of each range.
    tried = map(space.sets, space.grid()) if method == "grid" else space.corners()
    configs = [WorkloadChoice(workload, read_assignments(sets), asked.profile).config() for sets in tried]
    by = _metric(asked.by, configs[0])
    if asked.seeds > 1 and any("train.seed" in text.partition("=")[0] for text in asked.sets):
        raise UsageError(
            f"--seeds {asked.seeds}: --set names train.seed as well.", hint="leave one of them out"
        )
    _check_tuned(configs)
    if asked.prune is not None:
        _check_prune(asked.prune, configs)
    return Sweep(
        sweep_id=new_sweep_id(output),
        workload=configs[0].name,
        # A sweep may be resumed from another folder, and in a project that was moved.
        file=in_project(str(workload.absolute())) if workload.is_file() else str(workload),
        sets=tuple(asked.sets),
        profile=asked.profile,
        method=method,
        trials=trials,
        by=by,
        is_lower_better=is_lower_better(by, _bounds(by, configs[0])),
        seed=asked.seed,
        seeds=asked.seeds,
        prune_after=asked.prune,
        basis=basis(configs[0]),
        output=output,
    )


def resume(name: str, output: Path, *, asked: Asked = Asked()) -> Sweep:
    """Return a sweep to continue.

    Args:
        asked: the options that are given as well: a sweep has its own, so there may be none.

    Raises:
        UsageError: there is no such sweep, an option of a new one is given as well, or the settings of the
            workload are others than those of its trials.
    """
    for each in fields(Asked):
        if getattr(asked, each.name) != each.default:
            option = {"sets": "set"}.get(each.name, each.name)
            raise UsageError(
                f"--resume continues with the settings of the sweep; --{option} cannot be combined with it.",
                hint="leave it out, or begin a new sweep: what is cached is not trained again",
            )
    sweep = read_sweep(name, output)
    _edited_code(sweep)
    return sweep


def _edited_code(sweep: Sweep) -> list[str]:
    """Return the files of code that were edited since a sweep began.

    Raises:
        UsageError: the settings have changed, too, or cannot be read any more.
    """
    with raised_as(UsageError, ConfigError):  # which in a trial is told of its own values
        found = _changed_since(sweep)
    keys = [key for key in found if not key.startswith(CODE)]
    if keys:
        raise UsageError(
            f"The settings of {sweep.file} have changed since sweep {sweep.sweep_id} began: "
            f"{', '.join(keys[:5])}{', ...' * (len(keys) > 5)}. Its trials could not be compared.",
            hint="put them back, then sweep --resume; or begin a new one: cached trainings stay",
        )
    return [key.partition(".")[2] for key in found]


def _changed_since(sweep: Sweep) -> list[str]:
    """Return what the trials share no more, as dotted keys; none if the sweep does not say."""
    if not sweep.basis:
        return []
    return changed_since(sweep.basis, _choice(sweep, _first(read_space(sweep.sets))).config())


def carry_out(
    sweep: Sweep,
    *,
    jobs: int | None,
    tell: Callable[[str], None],
    listeners: Sequence[Listener] = (),
    warm: WarmProcess | None = None,
) -> int:
    """Run the trials that a sweep has not done, and write its page; return the exit code.

    Args:
        sweep: a new or interrupted sweep.
        jobs: how many trials run at once, >= 1, and how many nodes of all of them; None: one trial, and as
            many of its nodes as fit on this machine.
        listeners: called at the end of each trial's run.
        warm: the process that forks the nodes of all trials; None: the sweep starts one, so that TFX is
            imported only once.

    Raises:
        UsageError: another process is running this sweep, or is using its output folder; it prunes, and
            Optuna is not installed; or the workload's settings were edited meanwhile, or its data is gone.
        PipelineError: as `Trials.carry_on`.
    """
    if sweep.prune_after is not None:
        optuna_for("--prune")
    space = read_space(sweep.sets)
    config = _choice(sweep, _first(space)).config()
    seed = config.train.seed
    beside_again = ["--jobs", str(jobs)] if jobs else []
    again = command("sweep", "--resume", sweep.sweep_id, *beside_again, output=sweep.output)
    tell(f"{sweep.workload}: sweep {sweep.sweep_id}, {sweep.method}, {sweep.trials} trials by {sweep.by}")
    if sweep.by in config.evaluate.own_metrics:
        which = "lowest" if sweep.is_lower_better else "highest"
        tell(
            f"note: the best trial has the {which} {sweep.by}; for the other side write max_rise or max, or "
            f"max_drop or min, into evaluate.thresholds.{sweep.by}"
        )
    if (jobs or 1) > 1 and (shared := _shared_accelerator(config)):
        tell(
            f"note: the trainings of --jobs {jobs} share {shared} and its memory; without --jobs they "
            "follow one another"
        )
    known: set[str] = set()

    def note_edits() -> None:
        edited = [file for file in _edited_code(sweep) if file not in known]
        known.update(edited)
        if edited and any(trial.run_id for trial in sweep.done):
            tell(f"note: code has changed since the sweep began ({edited[0]}); trials may differ by that")

    note_edits()
    with (
        locked(sweep.folder, run_id=f"sweep {sweep.sweep_id}", what=f"sweep {sweep.sweep_id}"),
        _beside(sweep, jobs or 1) as beside,
        Warm() if warm is None else contextlib.nullcontext(warm) as forks,
    ):
        sweep.save()

        def run(
            sets: tuple[str, ...], *, resumed: str, begun: Callable[[str], None], hopeless: Hopeless
        ) -> RunRecord:
            note_edits()  # a sweep lasts for hours, and each trial reads the files anew
            chosen = _choice(sweep, sets)
            nodes = 1 if beside and beside.begun else jobs
            # Data that is gone for now, such as with a disk, is not refused for a trial's own values.
            gone = () if _varies_data(space) else (DataSourceError,)
            with raised_as(UsageError, *gone):
                request = workload_request(
                    chosen, output=sweep.output, beam_args=(), end=LAST_NODE, jobs=nodes
                )
            earlier = _unfinished(resumed, sweep.output)
            record = execute(
                request,
                display=_Quiet(begun),
                resumed=earlier,
                warm=forks,
                listeners=listeners,
                hopeless=hopeless,
                beside=beside,
            )
            if _has_other_data(sweep, space, record) and "data" not in known:
                known.add("data")
                tell(
                    f"note: the data has changed since the sweep began (run {record.run_id}); trials may "
                    "differ by that"
                )
            return record

        try:
            give_up = beside.interrupt if beside else lambda: None
            code = Trials(sweep, space, run, seed, tell, at_once=jobs or 1, give_up=give_up).carry_on()
        except KeyboardInterrupt:  # between two trials
            code = INTERRUPTED
        except (PipelineError, OSError):  # such as another command in the output folder, or a full disk
            if sweep.best:
                tell(f"The sweep has ended after {progress(sweep)}; what is finished is kept.")
                tell(f"hint: {again}   # once what follows is settled")
            raise
        finally:
            page = write_page(sweep)
    if code == INTERRUPTED:
        tell(f"Interrupted after {progress(sweep)}; what is finished is kept.")
        tell(f"hint: {again}")
        return code
    for line in summary(sweep):
        tell(line)
    tell(f"Page: {page}")
    if sweep.best:
        tell(f"hint: {sweep.push_command()}   # its checks, its gates, its push")
    return code


def _has_other_data(sweep: Sweep, space: Space, record: RunRecord) -> bool:
    """Return True if a trial read other data than the first, such as a newer span; keep the first's."""
    if _varies_data(space):
        return False
    found = data_of(record)
    sweep.data = sweep.data or found
    return bool(found) and found != sweep.data


def _varies_data(space: Space) -> bool:
    return any(axis.key.partition(".")[0] in _OF_THE_DATA for axis in space.axes)


def _beside(sweep: Sweep, at_once: int) -> AbstractContextManager[Beside | None]:
    if at_once == 1:  # each run takes the lock of the output folder itself
        return contextlib.nullcontext()
    return side_by_side(sweep.output, sweep.workload, run_id=f"sweep {sweep.sweep_id}")


def _shared_accelerator(config: WorkloadConfig) -> str:
    """Return the accelerator that trainings use by its sign on this machine; empty if they use none."""
    if config.train.device == "cpu":
        return ""
    found = find_evidence(os.environ, address=config.train.tpu_address)
    return f"a {found[0].kind.upper()} ({found[0].words})" if found else ""


def _choice(sweep: Sweep, sets: Sequence[str]) -> WorkloadChoice:
    file = PROJECT_ROOT / sweep.file
    named = file if file.is_file() else Path(sweep.file)
    return WorkloadChoice(named, read_assignments(sets), sweep.profile)


def _first(space: Space) -> tuple[str, ...]:
    return next(space.corners())


def _unfinished(run_id: str, output: Path) -> RunRecord | None:
    """Return the run to continue, if it exists and was cut short."""
    found = History(output).run(run_id) if run_id else None
    return found if found and found.state in _CUT_SHORT else None


def _metric(by: str | None, config: WorkloadConfig) -> str:
    metrics = (*config.evaluate.metrics, *config.evaluate.own_metrics)
    judging = [each for each in metrics if not _has_no_better_side(each)]
    if by is None:
        return next(iter(judging), metrics[0])
    if by not in metrics:
        near = nearest(by, metrics)
        raise UsageError(
            f"--by {by}: the workload does not measure it{f'; nearest: {near}' if near else ''}.",
            hint=f"evaluate has {', '.join(metrics)}; add one: --set 'evaluate.metrics=[{by}]'",
        )
    if _has_no_better_side(by):
        raise UsageError(
            f"--by {by}: neither its higher nor its lower values are better.",
            hint=f"name another: {', '.join(judging)}" if judging else "add another to evaluate.metrics",
        )
    return by


def _has_no_better_side(metric: str) -> bool:
    known = METRICS.get(plain_name(metric))
    return known is not None and known.better is None


def _bounds(metric: str, config: WorkloadConfig) -> list[str]:
    threshold = config.evaluate.thresholds.get(metric)
    return [bound for bound in BOUNDS if getattr(threshold, bound, None) is not None]


def _check_tuned(configs: Sequence[WorkloadConfig]) -> None:
    for name in sorted({name for config in configs if config.tune for name in config.tune.search}):
        if len({repr(config.train.hyperparameters.get(name)) for config in configs}) > 1:
            raise UsageError(
                f"--set varies train.hyperparameters.{name}, in whose place the Tuner puts what it finds "
                "(tune.search): the trials would not differ by it.",
                hint="--set tune=null leaves the Tuner out; or vary what it does not search",
            )


def _check_prune(after: int, configs: Sequence[WorkloadConfig]) -> None:
    if after < 1:
        raise UsageError(f"--prune {after}: must be at least 1, the first epoch.")
    most = max(config.train.epochs for config in configs)
    if after >= most:
        raise UsageError(
            f"--prune {after}: no trial trains longer than {counted(most, 'epoch')}, so none is pruned.",
            hint=f"prune earlier, or train more epochs: --set train.epochs={2 * after}",
        )


class _Quiet(RunDisplay):
    """A display that shows nothing, and only reports that a trial's run has begun."""

    def __init__(self, begun: Callable[[str], None]) -> None:
        self._begun = begun

    def begins(self, record: RunRecord) -> None:
        self._begun(record.run_id)
