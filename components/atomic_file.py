"""Writes files atomically: under a temporary name, renamed once the file is complete."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED = "unfinished."
"""Prefix of the temporary name; a process that is killed may leave such a file behind."""


@contextmanager
def whole_file(path: Path, *, survives_power_loss: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the file's folder to write to, and rename it to `path` after the block.

    Args:
        path: path of the file; if the block fails, a file that was there before stays.
        survives_power_loss: whether to sync the file and its name to disk before the context ends.

    Raises:
        OSError: the file cannot be moved to its place; if the disk is full, with the file's name.
    """
    # It keeps the suffix, which Keras checks. It is random: processes in two containers may have the same id,
    # and another user may have put a link of a name that can be guessed into a folder such as /tmp.
    partial = path.with_name(f"{UNFINISHED}{secrets.token_hex(4)}.{path.name}")
    try:
        yield partial
        if survives_power_loss:
            sync(partial)
        partial.replace(path)
        if survives_power_loss:
            sync(path.parent)  # the new name
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            error.filename = error.filename or str(path)  # a full disk refuses a write, which names no file
        raise


def sync(path: Path) -> None:
    """Write a file's content to disk, or the names in a folder without the content of its files."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
