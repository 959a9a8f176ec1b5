"""What the trials of a sweep share, so that they can be compared: the settings and the code."""

from collections.abc import Iterator, Mapping

from slipway.components.project import PROJECT_ROOT
from slipway.components.source_closure import source_closure
from slipway.pipeline.config import WorkloadConfig

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


def changed(before: Mapping[str, object], now: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys whose values differ."""
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from changed(old, new, f"{prefix}{key}.")
        elif old != new:
            yield f"{prefix}{key}"
