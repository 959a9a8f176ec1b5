"""The content of a sweep's report page: parallel coordinates, the best trial and its spread, all trials."""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from slipway.pipeline.report.index import PAGE_NAME
from slipway.pipeline.report.page import write
from slipway.pipeline.runs.comparison import number, short_names
from slipway.pipeline.sweep.record import Sweep, Trial
from slipway.pipeline.sweep.space import Choice, Range, Space, read_space

_AXIS_PX, _HEIGHT_PX = 150.0, 220.0
# Space for names beside the outer axes, and above and below all axes.
_MARGIN_PX = 60.0
_HEAD_PX = 30.0


@dataclass(frozen=True)
class Axis:
    """One axis of the plot: its name, its x position, and the texts of its marks with their y positions."""

    name: str
    x: float
    marks: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Line:
    """One trial in the plot: its points in SVG syntax, and its description in words."""

    points: str
    told: str
    is_best: bool


@dataclass(frozen=True)
class Row:
    """One trial in the table; `link` leads to the report page of its run, and is empty if there is none."""

    number: int
    run_id: str
    link: str
    values: tuple[str, ...]
    value: float | None
    shown: str
    state: str
    note: str
    is_best: bool


@dataclass(frozen=True)
class SweepPage:
    """The content of the page; `spread` describes the best trial over seeds, empty for fewer than two."""

    sweep: Sweep
    names: tuple[str, ...]
    axes: tuple[Axis, ...]
    lines: tuple[Line, ...]
    rows: tuple[Row, ...]
    best: Row | None
    spread: str
    command: str
    width: float
    height: float
    top: float
    bottom: float


def write_page(sweep: Sweep) -> Path:
    """Write the page to the sweep's folder atomically; return the file.

    Raises:
        OSError: the page cannot be written.
    """
    return write("sweep.html.j2", gather(sweep), sweep.folder / PAGE_NAME)


def gather(sweep: Sweep) -> SweepPage:
    """Return the content of the page."""
    space = read_space(sweep.sets)
    keys = [axis.key for axis in space.axes]
    names = short_names(keys)
    rows = tuple(_row(sweep, trial, at, keys) for at, trial in enumerate(sweep.done, 1))
    spread = ""
    if sweep.spread:
        mean, deviation, count = sweep.spread
        spread = (
            f"over {count} seeds: mean {number(mean)}, standard deviation {deviation:.2g}; "
            "the best trial is one of them"
        )
    axes, lines = _picture(sweep, space)
    return SweepPage(
        sweep=sweep,
        names=tuple(names[key] for key in keys),
        axes=axes,
        lines=lines,
        rows=rows,
        best=next((row for row in rows if row.is_best), None),
        spread=spread,
        command=sweep.push_command() if sweep.best else "",
        width=2 * _MARGIN_PX + _AXIS_PX * len(keys),
        height=_HEIGHT_PX + 2 * _HEAD_PX,
        top=_HEAD_PX,
        bottom=_HEAD_PX + _HEIGHT_PX,
    )


def _row(sweep: Sweep, trial: Trial, at: int, keys: list[str]) -> Row:
    page = sweep.output / "runs" / trial.run_id / PAGE_NAME
    link = quote(os.path.relpath(page, sweep.folder)) if trial.run_id and page.is_file() else ""
    notes = {
        "": trial.seed is None,
        f"train.seed {trial.seed}": trial.seed is not None,
        f"as trial {trial.repeats}": trial.repeats is not None,
    }
    note = "; ".join([*(text for text, holds in notes.items() if text and holds), *filter(None, [trial.why])])
    return Row(
        number=at,
        run_id=trial.run_id,
        link=f"./{link}" if link else "",
        values=tuple(trial.params.get(key, "") for key in keys),
        value=trial.value,
        shown=number(trial.value),
        state=trial.state,
        note=note,
        is_best=trial is sweep.best,
    )


def _picture(sweep: Sweep, space: Space) -> tuple[tuple[Axis, ...], tuple[Line, ...]]:
    trials = [trial for trial in sweep.searched if trial.value is not None and trial.repeats is None]
    if not trials:
        return (), ()
    names = short_names(axis.key for axis in space.axes)
    values = [trial.value or 0.0 for trial in trials]
    last = Range(sweep.by, "uniform", min(values), max(values))
    axes = [
        Axis(names[axis.key], _x(at), tuple((text, _y(axis, text)) for text in axis.ends()))
        for at, axis in enumerate(space.axes)
    ]
    ends = dict.fromkeys([last.low, last.high])
    metric = Axis(sweep.by, _x(len(axes)), tuple((number(end), _height(last, end)) for end in ends))
    lines = []
    # The best trial is drawn last, on top of the others.
    for trial in sorted(trials, key=lambda trial: trial is sweep.best):
        value = trial.value or 0.0
        heights = [*(_y(axis, trial.params[axis.key]) for axis in space.axes), _height(last, value)]
        points = " ".join(f"{_x(at):.1f},{y:.1f}" for at, y in enumerate(heights))
        told = ", ".join(f"{names[axis.key]} {trial.params[axis.key]}" for axis in space.axes)
        lines.append(Line(points, f"{sweep.by} {number(value)}: {told}", trial is sweep.best))
    return (*axes, metric), tuple(lines)


def _x(at: int) -> float:
    return _MARGIN_PX + _AXIS_PX * at


def _y(axis: Choice | Range, text: str) -> float:
    if isinstance(axis, Choice):
        return _at(axis.values.index(text) / (len(axis.values) - 1))
    return _height(axis, float(text))


def _height(axis: Range, value: float) -> float:
    low, high = axis.low, axis.high
    if axis.scale == "log":
        low, high, value = math.log(low), math.log(high), math.log(value)
    return _at((value - low) / (high - low) if high > low else 0.5)


def _at(share: float) -> float:
    return _HEAD_PX + _HEIGHT_PX * (1 - min(max(share, 0.0), 1.0))
