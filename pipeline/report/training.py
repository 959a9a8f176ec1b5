"""The training section of a run's report page: curves, speed, settings, and the Tuner's trials."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.components.finite_json import parsed
from slipway.pipeline.report.artifacts import first_json, folders, read_bytes
from slipway.pipeline.report.trend import EVAL
from slipway.pipeline.runs.record import RunRecord

WIDTH_PX, HEIGHT_PX = 300.0, 120.0
_SHOWN_CURVES = 24
_SHOWN_POINTS = 400
_SHOWN_TRIALS = 100


Result = Mapping[str, Any]
"""The Trainer's `result.json`; any version may have written it, so any key may be missing."""


@dataclass(frozen=True)
class Curve:
    """One metric over the epochs.

    Attributes:
        train: the `points` of an SVG polyline for the train split; empty if there are none.
        evaluated: the same for the eval split.
        last: the last value on each split, as text.
        epochs: the last epoch.
    """

    name: str
    train: str
    evaluated: str
    low: float
    high: float
    last: str
    epochs: int


@dataclass(frozen=True)
class Training:
    """The content of the training section.

    Attributes:
        verdict: the Trainer's verdict on the speed, in one sentence; may be empty.
        curves: at most 24.
        epochs: the same numbers as a table: a header, then a row for each of the last 50 epochs.
        facts: (name, value), as text.
        hyperparameters: (name, value), as text.
        trials: the Tuner's trials as a table: a header, then rows, best trial first.
    """

    verdict: str
    curves: tuple[Curve, ...]
    epochs: tuple[tuple[str, ...], ...]
    facts: tuple[tuple[str, str], ...]
    hyperparameters: tuple[tuple[str, str], ...]
    trials: tuple[tuple[str, ...], ...]


def training(record: RunRecord) -> Training | None:
    """Return the training section of a run, or None if the run has no records of a training.

    Raises:
        OSError, ValueError: a file cannot be read.
    """
    result: Result = first_json(record, "ModelRun", "result.json")
    epochs = first_json(record, "ModelRun", "history.json").get("epochs", [])
    job = first_json(record, "ModelRun", "job.json")
    trials = _trials(record)
    if not (result or epochs or trials):
        return None
    return Training(
        verdict=str(result.get("verdict", "")),
        curves=curves(epochs),
        epochs=_table(epochs),
        facts=tuple(_facts(result)),
        hyperparameters=tuple(_settings(job, result)),
        trials=trials,
    )


def curves(epochs: Sequence[Mapping[str, object]]) -> tuple[Curve, ...]:
    """Return the curves of each metric, with train and eval split in the same picture and without smoothing.

    Args:
        epochs: one record per epoch: `epoch`, and each metric by name.
    """
    names = dict.fromkeys(name.removeprefix(EVAL) for record in epochs for name in record if name != "epoch")
    drawn = [_curve(name, epochs) for name in names]
    return tuple(curve for curve in drawn if curve is not None)[:_SHOWN_CURVES]


def _curve(name: str, epochs: Sequence[Mapping[str, object]]) -> Curve | None:
    own, evaluated = _values(name, epochs), _values(EVAL + name, epochs)
    values = [value for _, value in (*own, *evaluated)]
    if not values:
        return None
    low, high = min(values), max(values)
    ats = [at for at, _ in (*own, *evaluated)]
    span = (min(ats), max(ats))
    last = [f"{word} {points[-1][1]:.4g}" for word, points in (("train", own), ("eval", evaluated)) if points]
    train, val = (_points(points, span, (low, high)) for points in (own, evaluated))
    return Curve(name, train, val, low, high, ", ".join(last), int(span[1]))


def _values(name: str, epochs: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    found = [(float(record.get("epoch", at)), record.get(name)) for at, record in enumerate(epochs, start=1)]
    kept = [(at, float(v)) for at, v in found if isinstance(v, int | float) and math.isfinite(v)]
    step = -(-len(kept) // _SHOWN_POINTS) or 1
    return kept[::step] if not kept or kept[-1] == kept[::step][-1] else [*kept[::step], kept[-1]]


def _points(
    points: Iterable[tuple[float, float]], span: tuple[float, float], bounds: tuple[float, float]
) -> str:
    width, height = span[1] - span[0] or 1.0, bounds[1] - bounds[0] or 1.0
    return " ".join(
        f"{WIDTH_PX * (at - span[0]) / width:.1f},{HEIGHT_PX * (1 - (value - bounds[0]) / height):.1f}"
        for at, value in points
    )


def _table(epochs: Sequence[Mapping[str, object]]) -> tuple[tuple[str, ...], ...]:
    names = tuple(dict.fromkeys(name for record in epochs for name in record))
    return (
        (names, *(tuple(_cell(record, name) for name in names) for record in epochs[-50:])) if names else ()
    )


def _cell(record: Mapping[str, object], name: str) -> str:
    """Return a metric of an epoch as text; one that was NaN or infinite is null in `history.json`."""
    return "no number" if record.get(name, "") is None else _text(record.get(name))


def _facts(result: Result) -> Iterable[tuple[str, str]]:
    speed, time, machine = result.get("speed") or {}, result.get("time") or {}, result.get("machine") or {}
    numbers = [
        ("devices", result.get("devices"), "{}"),
        ("input", result.get("input"), "{}"),
        ("steps", result.get("steps"), "{:,}"),
        ("parameters", result.get("parameters"), "{:,}"),
        ("throughput", speed.get("examples_per_s"), "{:,.0f} examples/s"),
        ("step", speed.get("step_ms"), "{:.3g} ms"),
        ("step on a constant batch", speed.get("constant_batch_step_ms"), "{:.3g} ms"),
        ("waiting for input", speed.get("input_waiting_share"), "{:.0%} of the time"),
        ("goodput", time.get("goodput"), "{:.0%}"),
        ("restarts", time.get("restarts"), "{}"),
        ("rollbacks", time.get("rollbacks"), "{}"),
        ("peak memory", _mib(machine.get("memory_peak_bytes")), "{:,.0f} MiB"),
        ("peak device memory", _mib(machine.get("device_memory_peak_bytes")), "{:,.0f} MiB"),
        ("device busy", _device_share(speed, time), "{:.0%} of the time: steps without input wait"),
        ("CPU time", machine.get("cpu_s"), "{:.1f} s"),
        ("CPU cores used", _cores_used(machine, time), "{:.2g} on average"),
    ]
    return ((name, form.format(value)) for name, value, form in numbers if value is not None)


def _device_share(speed: Result, time: Result) -> float | None:
    """Return the share of wall time in which the device had steps to run; its utilisation is not measured."""
    wall_s, waiting = time.get("wall_s"), speed.get("input_waiting_share")
    return None if not wall_s or waiting is None else float(time["useful_s"]) * (1.0 - waiting) / wall_s


def _cores_used(machine: Result, time: Result) -> float | None:
    wall_s, cpu_s = time.get("wall_s"), machine.get("cpu_s")
    return None if not wall_s or cpu_s is None else float(cpu_s) / wall_s


def _mib(size_bytes: float | None) -> float | None:
    return None if size_bytes is None else size_bytes / 2**20


def _settings(job: Mapping[str, Any], result: Result) -> Iterable[tuple[str, str]]:
    for name in ("model", "batch_size", "epochs", "seed"):
        if name in job:
            yield name, _text(job[name])
    tuned = result.get("tuned") or {}
    for name, value in (job.get("hyperparameters") or {}).items():
        yield name, _text(value) + (" (tuned)" if name in tuned else "")


def _trials(record: RunRecord) -> tuple[tuple[str, ...], ...]:
    for folder in folders(record, "TunerResults"):
        path = folder / "tuner_results.json"
        found = parsed(read_bytes(path)) if path.is_file() else []
        if found:
            names = tuple(dict.fromkeys(name for trial in found for name in trial))
            rows = (tuple(_text(trial.get(name)) for name in names) for trial in found[:_SHOWN_TRIALS])
            return (names, *rows)
    return ()


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
