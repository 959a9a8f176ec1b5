"""The record of a sweep: what it tries, and what came of each trial. Written whole after each change."""

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

TrialState = Literal["running", "complete", "failed"]


@dataclass
class Trial:
    """One trial.

    Attributes:
        params: its values, in YAML, by key.
        run_id: of its run; empty until it begins.
        state: of the trial; an interrupted one stays `running`.
        value: of the sweep's metric; None if it has none.
        wall_s: of its run.
        repeats: the number of the trial, from 1, that had the same settings, whose run it shares; None if
            none had.
        seed: where it only repeats the best settings with another seed; None for a trial of the search.
        why: why it failed.
    """

    params: dict[str, str]
    run_id: str = ""
    state: TrialState = "running"
    value: float | None = None
    wall_s: float = 0.0
    repeats: int | None = None
    seed: int | None = None
    why: str = ""


@dataclass
class Sweep:
    """A sweep, as `sweep.json` holds it.

    Attributes:
        sweep_id: sorts by time, as a run's.
        workload: its name.
        file: the workload file, absolute; or as given: its name, or a path from the project's folder.
        sets: each `--set`, as given.
        profile: of the workload; None: none.
        method: how settings are chosen.
        trials: how many are tried.
        by: the metric that they are judged by.
        is_lower_better: whether a lower value of it is the better one.
        seed: of the search's random numbers.
        seeds: with how many seeds the best settings are trained in the end; 1: with that of the workload.
        done: the trials so far, in order.
        output: the folder that it lies in, in `sweeps/SWEEP_ID/`; not part of the record.
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
    done: list[Trial] = field(default_factory=list)
    output: Path = Path()

    @property
    def folder(self) -> Path:
        """Its own folder."""
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
        """Of the best settings over seeds: mean, standard deviation, and how many; None for under two.

        The best trial is among them, which was chosen for its value: the mean leans to its side.
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
        """Writes `sweep.json`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / "sweep.json", self.to_json())

    def to_json(self) -> dict[str, object]:
        """Plain data, as `sweep.json` holds it."""
        document: dict[str, object] = plain(self)
        del document["output"]
        return document

    def settings(self, trial: Trial) -> tuple[str, ...]:
        """The `--set`s of a trial's run, all that `run` needs to have the same model."""
        from slipway.pipeline.sweep.space import read_space

        seed = () if trial.seed is None else (f"train.seed={trial.seed}",)
        return (*read_space(self.sets).sets(trial.params), *seed)

    def push_command(self) -> str:
        """The command that runs the best settings to the end: checks, gates and push; training is cached."""
        best = self.best
        assert best is not None  # noqa: S101
        sets = [word for each in self.settings(best) for word in ("--set", each)]
        profile = ["--profile", self.profile] if self.profile else []
        return command("run", self.file, *profile, *sets, output=self.output)


def new_sweep_id(output: Path) -> str:
    """An id that sorts after those of all sweeps in a folder."""
    return new_run_id(after=max(_ids(output), default=""))


def read_sweep(name: str, output: Path) -> Sweep:
    """A sweep by its id or the start of it; `latest`: the newest.

    Raises:
        UsageError: there is no such sweep, or several.
        DocumentError: its record is damaged.
    """
    ids = _ids(output)
    found = ids[-1:] if name == "latest" else [each for each in ids if each.startswith(name)]
    if len(found) != 1:
        near = nearest(name, ids)
        said = f"{name!r} fits {len(found)} sweeps" if found else f"no sweep {name!r} in {output}"
        raise UsageError(f"{said}{f'; nearest: {near}' if near else ''}.", hint=_those(ids))
    path = output / "sweeps" / found[0] / "sweep.json"
    sweep = read_document(Sweep, path)
    if sweep.sweep_id != found[0]:  # files are written to the folder of its id
        raise DocumentError(f"{path} cannot be read: sweep_id is {sweep.sweep_id!r}, not its folder's name")
    if why := _misfit(sweep):
        raise DocumentError(f"{path} cannot be read: {why}")
    sweep.output = output
    return sweep


def _misfit(sweep: Sweep) -> str:
    """Why its trials are none of the settings that it names; empty if they are."""
    from slipway.pipeline.sweep.space import read_space

    space = read_space(sweep.sets)
    for at, trial in enumerate(sweep.done, 1):
        if not space.holds(trial.params):
            return f"trial {at} has settings that the sweep does not try"
    if sweep.method == "grid" and sweep.trials != space.size:
        return f"it has {sweep.trials} trials, and its grid {space.size or 'no'} settings"
    return ""


def finite(value: float | None) -> float | None:
    """A metric that trials can be judged by; None for none, or one that is no number."""
    return value if value is not None and math.isfinite(value) else None


def _ids(output: Path) -> list[str]:
    return sorted(path.parent.name for path in (output / "sweeps").glob("*/sweep.json"))


def _those(ids: Sequence[str]) -> str:
    return f"there are: {', '.join(ids[-5:])}" if ids else "there is none yet: sweep WORKLOAD --set KEY=A,B"
