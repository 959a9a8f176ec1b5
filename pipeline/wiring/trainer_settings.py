"""Settings of the Trainer that are computed: class weights by code, and the digest of pretrained weights."""

from functools import lru_cache
from pathlib import Path

from slipway.components.project import PROJECT_ROOT
from slipway.components.store_address import is_remote
from slipway.components.trainer.settings.pretrained import KEY, Pretrained, sha256_of
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import ConfigError


def class_weights(config: WorkloadConfig) -> dict[str, float] | str | None:
    """Return `train.class_weights` keyed by each class's code, as text; `balanced` and None are unchanged."""
    weights, classes = config.train.class_weights, config.transform.classes_by_output.get("", ())
    if not isinstance(weights, dict):
        return weights
    return {str(classes.index(name)) if classes else name: weight for name, weight in weights.items()}


def pretrained_weights(config: WorkloadConfig) -> Pretrained | None:
    """Return `train.pretrained` with the digest of its file; None if it is not set.

    Raises:
        ConfigError: the file cannot be read, or its digest differs from the given one.
    """
    given = config.train.pretrained
    if given is None:
        return None
    found = given.sha256 or ""
    if not is_remote(given.path):
        file = PROJECT_ROOT / given.path
        try:
            told = file.stat()
            found = _digest(file, told.st_size, told.st_mtime_ns)
        except OSError as error:
            raise ConfigError(f"{KEY}.path = {given.path!r}: cannot be read: {error.strerror}") from error
        if given.sha256 not in (None, found):
            raise ConfigError(
                f"{KEY}.sha256: {given.path} has the SHA-256 {found}, not {given.sha256}; put the right file "
                "there, or write its digest"
            )
    return {"path": given.path, "sha256": found}


@lru_cache(maxsize=8)
def _digest(file: Path, _size: int, _changed_ns: int) -> str:
    return sha256_of(file)
