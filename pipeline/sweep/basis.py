"""What the trials of a sweep share, so that they can be compared: the settings, the code and the data."""

import hashlib
from collections.abc import Iterator, Mapping

from slipway.components.project import PROJECT_ROOT
from slipway.components.source_closure import source_closure
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.fingerprint import canonical_json
from slipway.pipeline.runs.diff import read_fingerprints
from slipway.pipeline.runs.record import RunRecord

_SETTINGS = ("data", "schema_path", "statistics", "transform", "train", "evaluate")
CODE = "code"
"""The key of the digests of the code, by its file."""


def basis(config: WorkloadConfig) -> dict[str, object]:
    """Return the settings that decide about a trial's metrics, as plain data, and digests of the code.

    Args:
        config: the workload with one choice of the varied values, always the same.

    Raises:
        PipelineError: a module of the workload cannot be read.
    """
    functions = (config.transform.preprocessing_fn, config.train.model)
    settings: dict[str, object] = config.model_dump(mode="json", by_alias=True, include=set(_SETTINGS))
    return settings | {CODE: source_closure(functions, root=PROJECT_ROOT)}


def data_of(record: RunRecord) -> str:
    """Return a digest of the files that a run began with, by name and content; empty if none are known."""
    try:
        prints = read_fingerprints(record.folder) or {}
    except PipelineError:  # damaged: it only keeps a note from being told
        return ""
    # Not those of later nodes, which a varied hyperparameter may name.
    first = [node.id for node in record.nodes if not node.upstream and node.id in prints]
    parts = {
        name: value
        for node_id in first
        for name, value in prints[node_id].parts.items()
        if name.startswith("data:")
    }
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest() if parts else ""


def changed(before: Mapping[str, object], now: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys whose values differ."""
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from changed(old, new, f"{prefix}{key}.")
        elif old != new:
            yield f"{prefix}{key}"
