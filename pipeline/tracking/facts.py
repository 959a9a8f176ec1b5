"""What is told of a run: settings as parameters, metrics, curves, digests of its data."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipway.pipeline.fingerprint.parts import Fingerprint
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import OfWorkload
from slipway.pipeline.tracking.node_times import run_times

# About this machine and whom a run is told to, not about the model.
_NOT_PARAMETERS = frozenset({"track", "notify", "metadata", "cloud", "description", "name"})
_DATA = "data:"


@dataclass(frozen=True)
class Point:
    """A metric at a step; the step is an epoch in a curve, and 0 where there is one value only."""

    name: str
    value: float
    step: int = 0


def parameters(record: RunRecord) -> dict[str, str]:
    """The workload's settings as they were, by dotted key; those that are null, or empty, are left out."""
    target = record.target.target
    config = json.loads(target.config) if isinstance(target, OfWorkload) else {}
    return settings(config) | {f"tuned.{k}": str(v) for k, v in record.training.get("tuned", {}).items()}


def settings(config: Mapping[str, object]) -> dict[str, str]:
    """A workload's settings by dotted key, of its file as plain data; as `parameters` has them."""
    return dict(_flat({name: value for name, value in config.items() if name not in _NOT_PARAMETERS}))


def _flat(value: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(value, str) and value:
        yield prefix, value
    elif value not in (None, [], ""):
        yield prefix, json.dumps(value)


def final_metrics(record: RunRecord) -> Iterator[Point]:
    """The evaluation of the run's model, and the speed of its training in examples/s and ms a step."""
    numbers: dict[str, Any] = {**record.metrics}
    numbers |= {f"speed/{name}": value for name, value in record.training.get("speed", {}).items()}
    numbers["wall_s"] = record.wall_s
    for name, value in numbers.items():
        if _is_number(value):
            yield Point(name, float(value))


def curves(epochs: Sequence[Mapping[str, Any]]) -> Iterator[Point]:
    """The metrics of the training over its epochs, on the train split and, as Keras names them, `val_`.

    Args:
        epochs: one record an epoch: `epoch`, and each metric by name.
    """
    for at, epoch in enumerate(epochs, start=1):
        step = epoch.get("epoch", at)
        for name, value in epoch.items():
            if name != "epoch" and _is_number(value):
                yield Point(f"training/{name}", float(value), int(step) if _is_number(step) else at)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def data_digests(prints: Mapping[str, Fingerprint]) -> dict[str, str]:
    """The SHA-256 of each data file that the run depends on, by name; in a bucket its checksum and size."""
    parts = {name: value for own in prints.values() for name, value in own.parts.items()}
    return {n.removeprefix(_DATA): parts[n] for n in sorted(parts) if n.startswith(_DATA)}


def begin_and_end_ms(record: RunRecord) -> tuple[int, int]:
    """When the run began and, of one that was resumed the last time, ended; in ms since 1970."""
    times = run_times(record)
    return round(times.begin.timestamp() * 1000), round(times.end.timestamp() * 1000)
