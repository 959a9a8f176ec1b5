"""Pretrained weights: a file, local or on gs://, that is identified by its SHA-256."""

import socket
from pathlib import Path, PurePosixPath

from slipway.components.atomic_file import whole_file
from slipway.components.errors import ComponentError
from slipway.components.project import PROJECT_ROOT
from slipway.components.store_address import is_remote
from slipway.components.trainer.settings.pretrained import KEY, Pretrained, sha256_of


def local_file(pretrained: Pretrained | None, *, folder: Path) -> Path | None:
    """Return the verified weights file on this machine; None if the training uses none.

    Args:
        pretrained: None: the training starts from the model's own weights.
        folder: receives a copy of a remote file.

    Raises:
        ComponentError: the file is missing, cannot be read, or has another digest.
    """
    if pretrained is None:
        return None
    path, wanted = pretrained["path"], pretrained["sha256"]
    try:
        file = _copied(path, folder) if is_remote(path) else PROJECT_ROOT / path
        found = sha256_of(file)
    except OSError as error:
        words = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise ComponentError(
            f"{KEY}: {path} {words}",
            hint="the machine that trains must reach it: a path is relative to the project there; gs://... "
            "is reached from everywhere",
        ) from error
    if found != wanted:
        raise ComponentError(
            f"{KEY}: {path} has the SHA-256 {found}, not {wanted}",
            hint="put the right file there; if it was changed on purpose, run again, with the new digest in "
            f"{KEY}.sha256 where that is given",
        )
    return file


def _copied(address: str, folder: Path) -> Path:
    import tensorflow as tf

    # One name per host, because hosts may share the folder; with the suffix, which Keras requires.
    copy = folder / f"pretrained-{socket.gethostname()}-{PurePosixPath(address).name}"
    try:
        with whole_file(copy) as partial:
            tf.io.gfile.copy(address, str(partial), overwrite=True)
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(error.message) from error
    except tf.errors.OpError as error:
        raise OSError(error.message) from error
    return copy
