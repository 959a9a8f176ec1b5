"""Computes the digest of a stored model, and stores that of an exported model beside it."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.saved_model.digest import combined_digest
from slipway.components.saved_model.quiet_tensorflow import import_tensorflow

EXPORTED = "model.sha256"
"""The file in a Model artifact's folder, beside the SavedModel, with the digest of the exported model."""

_CHUNK_BYTES = 2**20


def model_digest(folder: str) -> str:
    """Return the digest of the SavedModel in a folder, or at an address that TensorFlow reads, such as gs://.

    Every byte is read, a mebibyte at a time.
    """
    return combined_digest(dict(_remote(folder) if "://" in folder else _local(Path(folder))))


def keep_digest(serving_model: str) -> None:
    """Store the digest of a model that was just exported.

    Args:
        serving_model: the SavedModel's folder, inside that of a Model artifact.
    """
    with import_tensorflow().io.gfile.GFile(_beside(serving_model), "w") as file:
        file.write(model_digest(serving_model) + "\n")


def exported_digest(serving_model: str) -> str:
    """Read the digest that `keep_digest` wrote; empty for a model that another Trainer exported."""
    gfile = import_tensorflow().io.gfile
    path = _beside(serving_model)
    if not gfile.exists(path):
        return ""
    with gfile.GFile(path, "rb") as file:
        return str(file.read().decode(errors="replace")).strip()


def require_as_exported(name: str, serving_model: str) -> None:
    """Refuse a model whose files are no longer those that were exported, if `keep_digest` stored which.

    A model that is gone passes: whoever loads it reports that.

    Args:
        name: what the model is, for the message.
        serving_model: as in `keep_digest`.

    Raises:
        ComponentError: the files changed, or cannot be read.
    """
    was = exported_digest(serving_model)
    if not was or not import_tensorflow().io.gfile.exists(serving_model):
        return
    try:
        digest = model_digest(serving_model)
    except (OSError, import_tensorflow().errors.OpError) as error:  # the latter of a bucket
        raise ComponentError(f"{name}, {serving_model}, cannot be read: {error}") from error
    if digest != was:
        raise ComponentError(
            f"{name}, {serving_model}, is damaged: the SHA-256 over its files was {was[:12]} when it was "
            f"exported, and is {digest[:12]} now"
        )


def _local(folder: Path) -> Iterator[tuple[str, str]]:
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            with path.open("rb") as file:
                yield path.relative_to(folder).as_posix(), hashlib.file_digest(file, "sha256").hexdigest()


def _remote(folder: str) -> Iterator[tuple[str, str]]:
    gfile = import_tensorflow().io.gfile
    top = folder.rstrip("/") + "/"
    for parent, _, names in gfile.walk(folder):
        for path in (f"{parent.rstrip('/')}/{name}" for name in names):
            digest = hashlib.sha256()
            with gfile.GFile(path, "rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    digest.update(chunk)
            yield path.removeprefix(top), digest.hexdigest()


def _beside(serving_model: str) -> str:
    return f"{serving_model.rstrip('/').rpartition('/')[0]}/{EXPORTED}"
