"""Compares a rehearsal's outputs with a local run's by content, never by path, time or file layout.

Examples are compared in any order, protos field by field, numbers within a tolerance. Pure, except for
reading the files.
"""

import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format
from google.protobuf.message import Error as ProtoError
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from slipway.components.finite_json import parsed
from slipway.pipeline.cloud.rehearsal.example_rows import count_different, records_of, row_of
from slipway.pipeline.runs.record import Outputs

STATISTICS_TOLERANCE = 1e-6
"""Relative and absolute. Sums of floats depend on the order in which Beam adds them."""
HISTOGRAM_TOLERANCE = 1e-4
"""For the count in one of equally wide buckets: relative, and absolute in hundreds of rows."""
METRICS_TOLERANCE = 0.01
"""Absolute, for ratios and areas. Two trainings with the same seed need not agree exactly across devices."""

_MAX_NAMED = 3
Content = Any


@dataclass(frozen=True)
class Comparison:
    """One output of one node, in both runs.

    Attributes:
        differences: the differences in words; none if the contents agree.
        unread: why the contents could not be read; empty if they could.
    """

    node: str
    output: str
    differences: tuple[str, ...] = ()
    unread: str = ""


def compare_outputs(node: str, local: Outputs, rehearsed: Outputs) -> Iterator[Comparison]:
    """Compare the outputs of a node whose artifact types can be compared.

    Args:
        local, rehearsed: artifacts by output key, each with `uri` and `type`.
    """
    for key in sorted(local.keys() & rehearsed.keys()):
        here, there = len(local[key]), len(rehearsed[key])
        if here != there:
            yield Comparison(node, key, (f"{here} artifacts locally, {there} rehearsed",))
            continue
        for ours, theirs in zip(local[key], rehearsed[key], strict=True):
            if ours["type"] in _READERS:
                read = _READERS[ours["type"]]
                try:
                    found = tuple(_differences(read(Path(ours["uri"])), read(Path(theirs["uri"]))))
                except (OSError, ValueError, LookupError, ProtoError, text_format.Error) as error:
                    # A custom component need not store its artifacts as TFX's components do.
                    yield Comparison(node, key, unread=f"{type(error).__name__}: {error}")
                else:
                    yield Comparison(node, key, found)


def _differences(local: Mapping[str, Content], rehearsed: Mapping[str, Content]) -> Iterator[str]:
    for name in sorted(local.keys() | rehearsed.keys()):
        if name not in local or name not in rehearsed:
            yield f"{name} is {'rehearsed' if name in rehearsed else 'local'} only"
            continue
        here, there = local[name], rehearsed[name]
        if isinstance(here, list):
            yield from _different_records(name, here, there)
        else:
            yield from _different_values(name, here, there)


def _different_records(name: str, local: list[bytes], rehearsed: list[bytes]) -> Iterator[str]:
    if len(local) != len(rehearsed):
        yield f"{name}: {len(local):,} records locally, {len(rehearsed):,} rehearsed"
    elif local != rehearsed and (count := count_different(map(row_of, local), map(row_of, rehearsed))):
        yield f"{name}: {count:,} of {len(local):,} records differ"


def _different_values(name: str, local: Any, rehearsed: Any) -> Iterator[str]:
    found = list(_unequal(local, rehearsed, ""))
    yield from (
        f"{name}{path}: {here} locally, {there} rehearsed" for path, here, there in found[:_MAX_NAMED]
    )
    if len(found) > _MAX_NAMED:
        yield f"{name}: {len(found) - _MAX_NAMED} more values differ"


def _unequal(local: Any, rehearsed: Any, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(local, _Near) and isinstance(rehearsed, _Near):
        if not local.is_near(rehearsed):
            yield path, f"{local.value:g}", f"{rehearsed.value:g}"
    elif isinstance(local, dict) and isinstance(rehearsed, dict):
        for key in sorted(local.keys() | rehearsed.keys()):
            yield from _unequal(local.get(key), rehearsed.get(key), f"{path}.{key}")
    elif isinstance(local, list) and isinstance(rehearsed, list) and len(local) == len(rehearsed):
        for index, pair in enumerate(zip(local, rehearsed, strict=True)):
            yield from _unequal(*pair, f"{path}[{index}]")
    elif local != rehearsed:
        yield path, _short(local), _short(rehearsed)


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:40]}..."


@dataclass(frozen=True)
class _Near:
    """A number that equals another one within a tolerance."""

    value: float
    relative: float = 0.0
    absolute: float = 0.0

    def is_near(self, other: "_Near") -> bool:
        if math.isnan(self.value) and math.isnan(other.value):
            return True
        return math.isclose(self.value, other.value, rel_tol=self.relative, abs_tol=self.absolute)


def _with_tolerance(value: Any, **tolerance: float) -> Any:
    if isinstance(value, dict):
        return {key: _with_tolerance(item, **tolerance) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_tolerance(item, **tolerance) for item in value]
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return _Near(float(value), **tolerance)
    return value


def _by_split(folder: Path, read: Callable[[Path], Content]) -> dict[str, Content]:
    return {split.name.removeprefix("Split-"): read(split) for split in sorted(folder.glob("Split-*"))}


def _examples(split: Path) -> list[bytes]:
    return sorted(record for file in sorted(split.iterdir()) for record in records_of(file))


def _statistics(split: Path) -> Content:
    content = (split / "FeatureStats.pb").read_bytes()
    found = _by_feature(statistics_pb2.DatasetFeatureStatisticsList.FromString(content))
    return _with_tolerance(found, relative=STATISTICS_TOLERANCE, absolute=STATISTICS_TOLERANCE)


def _by_feature(statistics: statistics_pb2.DatasetFeatureStatisticsList) -> dict[str, Any]:
    """Return the statistics as plain data with features by name; their order depends on Beam's runner."""
    found: dict[str, Any] = json_format.MessageToDict(statistics)
    for dataset in found.get("datasets", ()):
        dataset["features"] = {
            feature.get("name") or ".".join(feature["path"]["step"]): _with_near_histograms(feature)
            for feature in dataset.get("features", ())
        }
    return found


def _with_near_histograms(feature: dict[str, Any]) -> dict[str, Any]:
    """Give bucket counts a tolerance: TFDV, but not our executor, assigns rows in single precision."""
    for histogram in feature.get("numStats", {}).get("histograms", ()):
        if histogram.get("type", "STANDARD") == "STANDARD":
            for bucket in histogram["buckets"]:
                count = float(bucket.get("sampleCount", 0.0))
                bucket["sampleCount"] = _Near(count, HISTOGRAM_TOLERANCE, absolute=100 * HISTOGRAM_TOLERANCE)
    return feature


def _anomalies(split: Path) -> Content:
    content = (split / "SchemaDiff.pb").read_bytes()
    return json_format.MessageToDict(anomalies_pb2.Anomalies.FromString(content))


def _schema(folder: Path) -> dict[str, Content]:
    text = (folder / "schema.pbtxt").read_text(encoding="utf-8")
    return {"schema": json_format.MessageToDict(text_format.Parse(text, schema_pb2.Schema()))}


def _transform_graph(folder: Path) -> dict[str, Content]:
    assets = folder / "transform_fn" / "assets"
    vocabularies = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in (sorted(assets.iterdir()) if assets.is_dir() else ())
    }
    return {"vocabularies": vocabularies, **_schema(folder / "transformed_metadata")}


def _blessing(folder: Path) -> dict[str, Content]:
    path = folder / "verdict.json"
    verdict = parsed(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {
        "blessed": (folder / "BLESSED").exists(),
        "metrics": _with_tolerance(verdict.get("metrics", {}), absolute=METRICS_TOLERANCE),
    }


def _model(folder: Path) -> dict[str, Content]:
    """Return the names of the SavedModel's files; its behaviour is compared by its metrics."""
    return {"files": {p.relative_to(folder).as_posix(): "" for p in folder.rglob("*") if p.is_file()}}


def _value(file: Path) -> dict[str, Content]:
    """Return the value that a component returned, or wrote as an artifact's value."""
    text = file.read_text(encoding="utf-8", errors="backslashreplace")
    if text.startswith("/") or "://" in text:
        raise ValueError("it holds an address, which differs in every run")
    return {"value": text}


def _number(file: Path) -> dict[str, Content]:
    # Relative, because the number may be a learning rate as well as a metric.
    return {"value": _Near(float(_value(file)["value"]), relative=METRICS_TOLERANCE)}


def _hyperparameters(folder: Path) -> dict[str, Content]:
    """Return the names of the hyperparameters that a Tuner chose; its search may be random."""
    chosen = json.loads((folder / "best_hyperparameters.txt").read_text(encoding="utf-8"))
    return {"chosen": dict.fromkeys(chosen["values"], "")}


_READERS: Mapping[str, Callable[[Path], dict[str, Content]]] = {
    "Examples": functools.partial(_by_split, read=_examples),
    "ExampleStatistics": functools.partial(_by_split, read=_statistics),
    "ExampleAnomalies": functools.partial(_by_split, read=_anomalies),
    "Schema": _schema,
    "TransformGraph": _transform_graph,
    "Model": _model,
    "ModelBlessing": _blessing,
    "HyperParameters": _hyperparameters,
    "Float": _number,
    **dict.fromkeys(("String", "Integer", "Boolean", "Bytes", "JsonValue"), _value),
}
