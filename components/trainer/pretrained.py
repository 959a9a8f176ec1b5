"""Weights that a training begins with: a file, here or on gs://, that is known by its SHA-256."""

import socket
from pathlib import Path, PurePosixPath

from slipway.components.errors import ComponentError
from slipway.components.project import PROJECT_ROOT
from slipway.components.trainer.settings.pretrained import KEY, Pretrained, is_remote, sha256_of
from slipway.components.whole_file import whole_file


def local_file(pretrained: Pretrained | None, *, folder: Path) -> Path | None:
    """The file of weights on this machine, checked; None where there is none.

    Args:
        pretrained: None: the training begins with the model's own weights.
        folder: takes a copy of what lies elsewhere.

    Raises:
        ComponentError: it is not there, cannot be read, or has another digest.
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

    # A name for each host, for they may share the folder; with its suffix, which Keras insists on.
    copy = folder / f"pretrained-{socket.gethostname()}-{PurePosixPath(address).name}"
    try:
        with whole_file(copy) as partial:
            tf.io.gfile.copy(address, str(partial), overwrite=True)
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(error.message) from error
    except tf.errors.OpError as error:
        raise OSError(error.message) from error
    return copy
