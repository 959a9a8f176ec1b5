"""The record of a sweep: its settings and the result of each trial, rewritten whole after each change."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from slipway.components.nearest import nearest
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.record import write_json
from slipway.pipeline.runs.run_id import new_run_id
from slipway.pipeline.runs.typed_json import DocumentError, plain, read_document
from slipway.pipeline.sweep.search import Method
from slipway.pipeline.terminal.invocation import command

TrialState = Literal["running", "complete", "failed", "pruned"]


@dataclass
class Trial:
    """One trial.

    Attributes:
        params: the trial's values, in YAML, by key.
        run_id: the id of its run; empty until the run begins.
        state: the trial's state; an interrupted trial stays `running`, and `pruned` was ended as hopeless.
        value: the value of the sweep's metric; None if there is none.
        repeats: the number, from 1, of the earlier trial with the same settings, whose run this trial
            shares; None if there is none.
        seed: the seed, if the trial only repeats the best settings with another seed; None for a trial of
            the search.
        why: why the trial failed, or was pruned.
        curve: the metric `Sweep.prune_by` after each epoch, with the epoch's number, from 1; empty if the
            sweep does not prune.
    """

    params: dict[str, str]
    run_id: str = ""
    state: TrialState = "running"
    value: float | None = None
    wall_s: float = 0.0
    repeats: int | None = None
    seed: int | None = None
    why: str = ""
    curve: list[tuple[int, float]] = field(default_factory=list)


@dataclass
class Sweep:
    """A sweep, stored in `sweep.json`.

    Attributes:
        sweep_id: an id that sorts by time, like a run's.
        file: the workload file: its name, or a path from the project's folder; of a file elsewhere absolute.
        sets: each `--set`, as given.
        profile: the workload's profile; None if none is used.
        by: the metric to judge trials by.
        is_lower_better: whether a lower value of the metric is better.
        seeds: with how many seeds to train the best settings at the end; 1: only with the workload's.
        prune_after: the first epoch after which a hopeless training is ended; None if none is.
        prune_by: the metric of the epochs, by Keras name, by which it is; empty until one is known.
        basis: the settings that the trials share, as `sweep.basis` returns them; empty in earlier records.
        data: what the first trial read, as `basis.data_of` returns it; empty before that, if the sweep varies
            it, and in earlier records.
        done: the trials so far, in order.
        output: the output folder, which holds the sweep in `sweeps/SWEEP_ID/`; not part of the record.
    """

    sweep_id: str
    workload: str
    file: str
    sets: tuple[str, ...]
    profile: str | None
    method: Method
    trials: int
    by: str
    is_lower_better: bool
    seed: int = 0
    seeds: int = 1
    prune_after: int | None = None
    prune_by: str = ""
    basis: dict[str, object] = field(default_factory=dict)
    data: str = ""
    done: list[Trial] = field(default_factory=list)
    output: Path = Path()

    @property
    def folder(self) -> Path:
        """The sweep's folder."""
        return self.output / "sweeps" / self.sweep_id

    @property
    def searched(self) -> list[Trial]:
        """The trials of the search, without those that repeat the best with other seeds."""
        return [trial for trial in self.done if trial.seed is None]

    @property
    def best(self) -> Trial | None:
        """The best trial, the earliest of equals; None if none has a value."""
        found = [trial for trial in self.searched if trial.value is not None]
        sign = 1 if self.is_lower_better else -1
        return min(found, key=lambda trial: sign * (trial.value or 0.0), default=None)

    @property
    def spread(self) -> tuple[float, float, int] | None:
        """The mean, standard deviation and number of seeds of the best settings; None for fewer than two.

        They include the best trial, which was chosen for its value, so the mean is biased towards it.
        """
        best = self.best
        if best is None:
            return None
        again = [trial.value for trial in self.done if trial.seed is not None]
        values = [value for value in (best.value, *again) if value is not None]
        if len(values) < 2:
            return None
        return statistics.fmean(values), statistics.stdev(values), len(values)

    def save(self) -> None:
        """Write `sweep.json`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / "sweep.json", self.to_json())

    def to_json(self) -> dict[str, object]:
        """Return plain data for `sweep.json`."""
        document: dict[str, object] = plain(self)
        del document["output"]
        return document

    def settings(self, trial: Trial) -> tuple[str, ...]:
        """Return the `--set`s of a trial's run, with which `run` trains the same model."""
        from slipway.pipeline.sweep.space import read_space

        seed = () if trial.seed is None else (f"train.seed={trial.seed}",)
        return (*read_space(self.sets).sets(trial.params), *seed)

    def push_command(self) -> str:
        """Return the command that completes the best run with checks, gates and push; training is cached."""
        best = self.best
        assert best is not None  # noqa: S101
        sets = [word for each in self.settings(best) for word in ("--set", each)]
        profile = ["--profile", self.profile] if self.profile else []
        return command("run", self.file, *profile, *sets, output=self.output)


def new_sweep_id(output: Path) -> str:
    """Return an id that sorts after those of all sweeps in an output folder."""
    return new_run_id(after=max(_ids(output), default=""))


def read_sweep(name: str, output: Path) -> Sweep:
    """Read a sweep by its id or the start of it; `latest` is the newest.

    Raises:
        UsageError: there is no such sweep, or several.
        DocumentError: the sweep's record is damaged.
    """
    ids = _ids(output)
    found = ids[-1:] if name == "latest" else [each for each in ids if each.startswith(name)]
    if len(found) != 1:
        near = nearest(name, ids)
        said = f"{name!r} fits {len(found)} sweeps" if found else f"no sweep {name!r} in {output}"
        raise UsageError(f"{said}{f'; nearest: {near}' if near else ''}.", hint=_those(ids))
    path = output / "sweeps" / found[0] / "sweep.json"
    try:
        sweep = read_document(Sweep, path)
        _check(sweep, path)
    except DocumentError as error:
        hint = "begin the sweep anew: what its trials have made is cached"
        raise DocumentError(error.message, hint=hint) from error
    sweep.output = output
    return sweep


def _check(sweep: Sweep, path: Path) -> None:
    if sweep.sweep_id != path.parent.name:  # `save` writes to the folder named by `sweep_id`
        raise DocumentError(f"{path} cannot be read: sweep_id is {sweep.sweep_id!r}, not its folder's name")
    if why := _misfit(sweep):
        raise DocumentError(f"{path} cannot be read: {why}")


def _misfit(sweep: Sweep) -> str:
    """Return why the sweep's trials do not fit the settings that it tries; empty if they do."""
    from slipway.pipeline.sweep.space import read_space

    space = read_space(sweep.sets)
    for at, trial in enumerate(sweep.done, 1):
        if not space.holds(trial.params):
            return f"trial {at} has settings that the sweep does not try"
    if sweep.method == "grid" and sweep.trials != space.size:
        return f"it has {sweep.trials} trials, and its grid {space.size or 'no'} settings"
    return ""


def finite(value: float | None) -> float | None:
    """Return a metric's value if it is finite, so that trials can be judged by it; otherwise None."""
    return value if value is not None and math.isfinite(value) else None


def _ids(output: Path) -> list[str]:
    return sorted(path.parent.name for path in (output / "sweeps").glob("*/sweep.json"))


def _those(ids: Sequence[str]) -> str:
    return f"there are: {', '.join(ids[-5:])}" if ids else "there is none yet: sweep WORKLOAD --set KEY=A,B"
