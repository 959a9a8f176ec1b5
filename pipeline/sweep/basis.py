"""What the trials of a sweep share, so that they can be compared: the settings, the code and the data."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from slipway.components.project import PROJECT_ROOT
from slipway.components.source_closure import source_closure
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.fingerprint import canonical_json
from slipway.pipeline.runs.diff import read_fingerprints
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.typed_json import plain

_SETTINGS = ("data", "schema_path", "statistics", "transform", "train", "evaluate")
_SCHEMA = "schema"
"""The key of the only path among them that is absolute in a `WorkloadConfig`."""
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
    settings = _with_path_of_project(_settings(config))
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


def changed_since(before: Mapping[str, object], config: WorkloadConfig) -> list[str]:
    """Return the dotted keys of what is no more as an earlier basis has it.

    A setting that the release of the earlier basis did not have yet, and that has its default, has not
    changed.

    Args:
        before: as `basis` returned it, of the same choice of the varied values.

    Raises:
        PipelineError: a module of the workload cannot be read.
    """
    now = plain(basis(config))
    given = _settings(config, without_defaults=True) | {CODE: now[CODE]}
    return list(changed(_with_defaults(_with_path_of_project(before), now, given), now))


def in_project(path: str) -> str:
    """Return the path of a file as it is from the project's folder, wherever that is moved; of another file,
    its own."""
    return str(Path(path).relative_to(PROJECT_ROOT)) if Path(path).is_relative_to(PROJECT_ROOT) else path


def _settings(config: WorkloadConfig, *, without_defaults: bool = False) -> dict[str, object]:
    return config.model_dump(
        mode="json", by_alias=True, include=set(_SETTINGS), exclude_defaults=without_defaults
    )


def _with_path_of_project(settings: Mapping[str, object]) -> dict[str, object]:
    schema = settings.get(_SCHEMA)
    return {**settings, **({_SCHEMA: in_project(schema)} if isinstance(schema, str) else {})}


def _with_defaults(
    before: Mapping[str, object], now: Mapping[str, object], given: Mapping[str, object]
) -> dict[str, object]:
    """Return earlier settings with those of today that are missing there and are not given."""
    found = dict(before)
    for key, value in now.items():
        earlier, own = before.get(key), given.get(key)
        if key not in before:
            if key not in given:
                found[key] = value
        elif isinstance(value, dict) and isinstance(earlier, dict):
            found[key] = _with_defaults(earlier, value, own if isinstance(own, dict) else {})
    return found


def changed(before: Mapping[str, object], now: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys whose values differ."""
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from changed(old, new, f"{prefix}{key}.")
        elif old != new:
            yield f"{prefix}{key}"
