"""The hidden folder that `predict` writes to until it is complete; those of killed processes are removed."""

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from slipway.components.atomic_file import sync
from slipway.components.lock_file import WAIT_S, held, locked_folder
from slipway.pipeline.errors import UsageError

_HIDDEN = re.compile(r"\..+\.[0-9a-f]{8}")
_SUMMARY = "summary.json"
# What the kernel says of a rename to a folder in which another disk begins.
_MOUNTED = (errno.EBUSY, errno.EXDEV)
_WRITTEN = re.compile(r"(predictions|rejects)-\d+-of-\d+\.(jsonl|report)|summary\.json")


@contextlib.contextmanager
def unfinished(target: Path, *, is_own: bool = False) -> Iterator[Path]:
    """Provide a new folder beside the target, renamed to the target at the end, or removed after an error.

    Folders left there by killed processes are removed first. An active process is recognized by the lock on
    its folder, which the kernel releases when the process ends, however it ends.

    Args:
        target: an absolute path; must be new or empty. A link is followed.
        is_own: whether no other process can have the same target. Else a file beside it locks it, which a
            killed process leaves for the next one.

    Raises:
        UsageError: the target is not empty, or cannot be created, or another process writes its predictions
            for it; or somebody has filled it meanwhile: the predictions are kept beside it.
    """
    target = Path(os.path.realpath(target))  # a folder cannot be renamed to a link
    with contextlib.ExitStack() as locks:
        try:
            partial = _made(target, locks, is_own=is_own)
        except OSError as error:
            raise UsageError(
                f"{target} cannot be created for the predictions: {error.strerror}.",
                hint="choose a new folder with --to, that you can write to",
            ) from error
        try:
            yield partial
            for path in partial.iterdir():  # else a power loss may leave the name, and files of 0 bytes
                sync(path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)  # the first error is the one to report
            raise
        _publish(partial, target)


def _publish(partial: Path, target: Path) -> None:
    try:
        _replace(target, partial)
    except OSError as error:
        kept = target.with_name(f"{target.name}{partial.suffix}")  # what took hours must not be lost
        try:
            partial.rename(kept)
        except OSError:  # nothing in that folder can be renamed any more
            kept = partial
            with contextlib.suppress(OSError):
                (kept / "complete").touch()  # so that it counts as no leftover
        raise UsageError(
            f"The predictions are complete, but {target} cannot be replaced by them any more: "
            f"{error.strerror}.",
            hint=f"they are in {kept}",
        ) from error


def _replace(target: Path, partial: Path) -> None:
    """Rename the folder to the target, or copy its files there, whole or not at all, if a disk begins there.

    A volume of a container cannot be replaced. The last file is `summary.json`, which says that they are
    complete.
    """
    try:
        partial.rename(target)
    except OSError as error:
        if error.errno not in _MOUNTED or any(target.iterdir()):
            raise
        paths = sorted(partial.iterdir(), key=lambda path: (path.name == _SUMMARY, path.name))
        try:
            for path in paths:
                shutil.copyfile(path, target / path.name)
        except OSError:
            for path in paths:
                (target / path.name).unlink(missing_ok=True)
            raise
        shutil.rmtree(partial)


def _made(target: Path, locks: contextlib.ExitStack, *, is_own: bool) -> Path:
    _check_is_free(target)
    if not target.parent.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
    if not is_own and not locks.enter_context(held(target.with_name(f".{target.name}.lock"))):
        raise UsageError(
            f"Another process writes its predictions for {target}.", hint="choose a new folder with --to"
        )
    _check_is_free(target)  # by the one that held the lock before
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    # Without this lock, another process could take the folder for a leftover before it is locked.
    with locked_folder(target.parent, wait_s=WAIT_S) as is_locked:
        if is_locked:
            _remove_left(target.parent)
        partial.mkdir()
        locks.enter_context(locked_folder(partial))
    return partial


def _check_is_free(target: Path) -> None:
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} already exists.", hint="choose a new folder with --to")


def _remove_left(folder: Path) -> None:
    for path in folder.iterdir():
        if not _HIDDEN.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        with contextlib.suppress(OSError), locked_folder(path) as is_left:
            # Removed only if it holds nothing but files of `predict`: a user's folder of such a name is kept.
            if is_left and all(_WRITTEN.fullmatch(each.name) for each in path.iterdir()):
                shutil.rmtree(path)
