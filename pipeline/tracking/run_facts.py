"""The facts about a run to send to trackers: parameters, metrics, training curves, digests of its data."""

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.report.artifacts import first_json
from slipway.pipeline.runs.diff import read_fingerprints
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import OfWorkload
from slipway.pipeline.tracking.node_times import run_times

# Settings about this machine and about who is notified, not about the model.
_NOT_PARAMETERS = frozenset({"track", "notify", "metadata", "cloud", "description", "name"})
_DATA = "data:"


@dataclass(frozen=True)
class Point:
    """A metric at a step; the step is an epoch in a curve, and 0 if there is only one value."""

    name: str
    value: float
    step: int = 0


def parameters(record: RunRecord) -> dict[str, str]:
    """Return the workload's settings in this run by dotted key, without null and empty ones."""
    target = record.target.target
    config = json.loads(target.config) if isinstance(target, OfWorkload) else {}
    return settings(config) | {f"tuned.{k}": str(v) for k, v in record.training.get("tuned", {}).items()}


def settings(config: Mapping[str, object]) -> dict[str, str]:
    """Flatten a workload's configuration, as plain data, to dotted keys, as in `parameters`."""
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
    """Yield the model's metrics, the training speed in examples/s and ms per step, and the run's duration."""
    numbers: dict[str, object] = {**record.metrics}
    numbers |= {f"speed/{name}": value for name, value in record.training.get("speed", {}).items()}
    numbers["wall_s"] = record.wall_s
    for name, value in numbers.items():
        if _is_number(value):
            yield Point(name, float(value))


def curves(epochs: Sequence[Mapping[str, object]]) -> Iterator[Point]:
    """Yield the training metrics of each epoch, on the train split and, with Keras' prefix `val_`, on eval.

    Args:
        epochs: one record per epoch: `epoch`, and each metric by name.
    """
    for at, epoch in enumerate(epochs, start=1):
        step = epoch.get("epoch", at)
        for name, value in epoch.items():
            if name != "epoch" and _is_number(value):
                yield Point(f"training/{name}", float(value), int(step) if _is_number(step) else at)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def data_digests(prints: Mapping[str, Fingerprint]) -> dict[str, str]:
    """Return the SHA-256 of each data file of the run by name; for a file in a bucket, checksum and size."""
    parts = {name: value for own in prints.values() for name, value in own.parts.items()}
    return {n.removeprefix(_DATA): parts[n] for n in sorted(parts) if n.startswith(_DATA)}


def run_data(record: RunRecord) -> dict[str, str]:
    """Return the digest of each data file of a run by name, as `data_digests`; errors as in `node_data`."""
    return dict(sorted(each for own in node_data(record).values() for each in own.items()))


def node_data(record: RunRecord) -> dict[str, dict[str, str]]:
    """Return for each node the data files that it reads, with their digests, as `data_digests`.

    A run in the cloud has no fingerprints: its files are those that Ingest noted.

    Raises:
        ValueError, OSError: Ingest's summary cannot be read.
    """
    prints = read_fingerprints(record.folder)
    if prints is not None:
        return {node: data_digests({node: own}) for node, own in prints.items()}
    summary = first_json(record, "schemas.Quarantine", "summary.json")
    noted = {
        each["name"]: _as_stored(each["crc32c"], each["size_bytes"]) for each in summary.get("files", [])
    }
    return {node.id: noted for node, _ in record.outputs_of("schemas.Quarantine")}


def _as_stored(crc32c: str, size_bytes: int) -> str:
    """Return a checksum and a size in the form that a local run has from Cloud Storage."""
    return f"{base64.b64encode(bytes.fromhex(crc32c)).decode()} {size_bytes}"


def begin_and_end_ms(record: RunRecord) -> tuple[int, int]:
    """Return when a run began, and when it ended for the last time if it was resumed, in ms since 1970."""
    times = run_times(record)
    return round(times.begin.timestamp() * 1000), round(times.end.timestamp() * 1000)
