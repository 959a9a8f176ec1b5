"""A file that readers find whole or not at all: written under another name, and renamed when it is done."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path, *, survives_power_loss: bool = False) -> Iterator[Path]:
    """Gives another name in the file's folder, to write under; after the block the file is there.

    Args:
        path: of the file; what was there stays where the block fails.
        survives_power_loss: whether it is on the disk, name and all, when the block has ended.

    Raises:
        OSError: the file cannot be put in its place.
    """
    partial = path.with_name(f".{os.getpid()}.{path.name}")  # with its suffix, which Keras insists on
    try:
        yield partial
        if survives_power_loss:
            _sync(partial)
        partial.replace(path)
        if survives_power_loss:
            _sync(path.parent)  # the new name
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
