"""A file that readers find whole or not at all: written under another name, and renamed when it is done."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED = "unfinished."
"""Begins the other name; a process that is killed may leave such a file behind."""


@contextmanager
def whole_file(path: Path, *, survives_power_loss: bool = False) -> Iterator[Path]:
    """Gives another name in the file's folder, to write under; after the block the file is there.

    Args:
        path: of the file; what was there stays where the block fails.
        survives_power_loss: whether it is on the disk, name and all, when the block has ended.

    Raises:
        OSError: the file cannot be put in its place.
    """
    # With its suffix, which Keras insists on.
    partial = path.with_name(f"{UNFINISHED}{os.getpid()}.{path.name}")
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
