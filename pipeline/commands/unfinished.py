"""The hidden folder that `predict` writes to until it is complete; those of killed processes are removed."""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from slipway.pipeline.errors import UsageError

_HIDDEN = re.compile(r"\..+\.[0-9a-f]{8}")
_WRITTEN = re.compile(r"(predictions|rejects)-\d+-of-\d+\.(jsonl|report)|summary\.json")


@contextlib.contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """Provide a new folder beside the target, renamed to the target at the end, or removed after an error.

    Folders left there by killed processes are removed first. An active process is recognized by the lock on
    its folder, which the kernel releases when the process ends, however it ends.

    Args:
        target: an absolute path; must be new or empty.

    Raises:
        UsageError: the target is not empty, or cannot be created.
    """
    with contextlib.ExitStack() as held:
        try:
            partial = _made(target, held)
        except OSError as error:
            raise UsageError(
                f"{target} cannot be created for the predictions: {error.strerror}.",
                hint="choose a new folder with --to, that you can write to",
            ) from error
        try:
            yield partial
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)  # the first error is the one to report
            raise


def _made(target: Path, held: contextlib.ExitStack) -> Path:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} already exists.", hint="choose a new folder with --to")
    if not target.parent.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    # Without this lock, another process could take the folder for a leftover before it is locked.
    with _held(target.parent, fcntl.LOCK_EX) as is_held:
        if is_held:
            _remove_left(target.parent)
        partial.mkdir()
        held.enter_context(_held(partial, fcntl.LOCK_EX | fcntl.LOCK_NB))
    return partial


def _remove_left(folder: Path) -> None:
    for path in folder.iterdir():
        if not _HIDDEN.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        with contextlib.suppress(OSError), _held(path, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_left:
            # Removed only if it holds nothing but files of `predict`: a user's folder of such a name is kept.
            if is_left and all(_WRITTEN.fullmatch(each.name) for each in path.iterdir()):
                shutil.rmtree(path)


@contextlib.contextmanager
def _held(folder: Path, how: int) -> Iterator[bool]:
    """Try to lock a folder; yield False if another process holds the lock or the file system has no locks."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, how)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
