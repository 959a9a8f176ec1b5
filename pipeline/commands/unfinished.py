"""The folder of `predict` while it is being written: hidden, and removed if its process was killed."""

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
    """A new folder beside the target, renamed to it at the end; after an error it is removed.

    Those that killed processes have left there go first: who is at work holds a lock on its own, which the
    kernel lets go of when the process ends, however it ends.

    Args:
        target: absolute; must be new or empty.

    Raises:
        UsageError: it holds something, or cannot be made.
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
    # Locked, so that nobody takes a folder for a leftover between its creation and its lock.
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
            # Only the files that `predict` writes: a user's own folder of such a name is kept.
            if is_left and all(_WRITTEN.fullmatch(each.name) for each in path.iterdir()):
                shutil.rmtree(path)


@contextlib.contextmanager
def _held(folder: Path, how: int) -> Iterator[bool]:
    """Whether the folder could be locked: not if another process holds it or its file system has no locks."""
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
