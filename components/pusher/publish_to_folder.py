"""Publishes a model as a version in a directory that a model server watches: completely or not at all.

<base>/<version>/           TF Serving's layout; its `manifest.json` lists the files that belong to it
<base>/.staging-<random>/   an unfinished version; servers read integer names only
<base>/.lock                held by the active publisher; the kernel releases it when the process ends
"""

import contextlib
import errno
import logging
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from slipway.components.atomic_file import sync
from slipway.components.errors import ComponentError
from slipway.components.lock_file import is_taken_in
from slipway.components.pusher.manifest import (
    FileEntry,
    holds,
    model_contents,
    opened,
    read_file,
    read_manifest,
    sha256,
    verify,
)
from slipway.components.pusher.manifest_contents import Provenance
from slipway.components.pusher.version_files import NO_EXTRAS, Extras, sealed
from slipway.components.pusher.versions import Published, next_version, version_number
from slipway.components.saved_model.digest import MANIFEST, SIGNATURE

LOCK_WAIT_S = 600.0
"""How long to wait for another publisher of the same base: longer than copying any model should take."""

_STAGING = ".staging-"
_CHUNK_BYTES = 2**26
_REMEDIES = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room in the quota",
    errno.EACCES: "make it readable and writable for this user, or choose another push.destination",
    errno.EPERM: "make it readable and writable for this user, or choose another push.destination",
    errno.EROFS: "mount it writable, or choose another push.destination",
    errno.ENOTDIR: "choose another push.destination",
    errno.EEXIST: "choose another push.destination",
}

_log = logging.getLogger(__name__)


def publish(
    model_folder: Path, *, base: Path, provenance: Provenance | None = None, extras: Extras = NO_EXTRAS
) -> Published:
    """Make the model the newest version in `base`, unless it already is, with the same signature.

    If the process is killed or fails at any moment, there is either no new version or a complete one on disk;
    the next call removes the remains, or finds the version. Publishers of one base take turns.

    Args:
        model_folder: a SavedModel: regular files and folders only. The files of an earlier push at its top
            level are rewritten.
        base: the folder of the versions; created with its parents if necessary.
        provenance, extras: see `slipway.components.pusher.version_files.sealed`.

    Raises:
        ComponentError: `model_folder` is not a SavedModel or holds a link; `base` is a file, full or not
            writable; its newest version is a link out of it; another publisher does not finish.
    """
    with _errors_named(base, f"The model cannot be published to {base}"):
        folders, sizes = model_contents(model_folder)
        _make_folder(base)
        with _turn(base):
            _remove_leftovers(base)
            newest = _newest(base)
            if newest and _is_same(newest[1], model_folder, sizes, extras):
                # The version's publisher may have been killed between the rename and this call.
                sync(base)
                return Published(newest[0], str(base), was_there=True)
            version = next_version([newest[0]] if newest else [], base=str(base))
            _write(base / str(version), model_folder, folders, sizes, provenance, extras)
            return Published(version, str(base), was_there=False)


def remove_version(base: Path, version: int) -> None:
    """Remove a version, its name first, so that no server sees half of it; a missing one is not an error.

    Raises:
        ComponentError: the version cannot be removed.
    """
    with _errors_named(base, f"Version {version} cannot be removed from {base}"), _turn(base):
        _remove_leftovers(base)
        # Renamed like a leftover: if this process dies here, the next publisher finishes the removal.
        with contextlib.suppress(FileNotFoundError):
            (base / str(version)).rename(base / f"{_STAGING}{secrets.token_hex(8)}")
        sync(base)
        _remove_leftovers(base)


def _is_same(version: Path, folder: Path, sizes: Mapping[str, int], extras: Extras) -> bool:
    """Return True if a version is intact, holds the folder's files and has the extras."""
    if not holds(read_manifest(version), folder, sizes):
        return False
    problem = verify(version)
    if problem:
        _log.warning("%s is damaged, so the model is pushed again: %s.", version, problem)
    return not problem and extras.are_there(read_file(version / SIGNATURE), read_file(version / MANIFEST))


def _write(
    path: Path,
    folder: Path,
    folders: list[str],
    names: Mapping[str, int],
    provenance: Provenance | None,
    extras: Extras,
) -> None:
    staging = path.with_name(_STAGING + secrets.token_hex(8))
    try:
        staging.mkdir()
        for name in folders:
            (staging / name).mkdir()
        entries = {name: _copy(folder / name, staging / name) for name in sorted(names)}
        for name, content in sealed(entries, provenance, extras).items():
            with (staging / name).open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for name in reversed(folders):
            sync(staging / name)
        sync(staging)
        # A rename only replaces an empty folder; the version's name is new anyway.
        staging.rename(path)
    except BaseException:
        # The next publisher removes what cannot be removed now; report the first error.
        shutil.rmtree(staging, ignore_errors=True)
        raise
    sync(path.parent)


def _copy(source: Path, target: Path) -> FileEntry:
    """Copy a file to disk; return the entry of the copy, as read back."""
    with opened(source) as reading, target.open("xb") as writing, ThreadPoolExecutor(1) as beside:
        while os.sendfile(writing.fileno(), reading.fileno(), None, _CHUNK_BYTES):
            pass
        # Waiting for the disk and hashing take about the same time, and both release the GIL.
        on_disk = beside.submit(os.fsync, writing.fileno())
        entry = FileEntry(sha256(target), target.stat().st_size)
        on_disk.result()
    return entry


def _newest(base: Path) -> tuple[int, Path] | None:
    """Return the largest version and its path, complete or not; None if there is none.

    Raises:
        ComponentError: it is a link out of `base`.
    """
    # A file with such a name is not a version, but a new version must not collide with it either.
    versions = [(number, path) for path in base.iterdir() if (number := version_number(path.name))]
    if not versions:
        return None
    version, path = max(versions)
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(base)):
        raise ComponentError(
            f"{path} is a link out of {base}, to {real}; its content cannot be verified.",
            hint=f"remove the link: rm {path}",
        )
    return version, path


def _remove_leftovers(base: Path) -> None:
    """Remove what dead publishers left: the holder of the lock is the only one alive."""
    for path in base.glob(f"{_STAGING}*"):
        _log.info("Removing %s.", path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextlib.contextmanager
def _turn(base: Path) -> Iterator[None]:
    """Hold the lock of the base."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = base / ".lock"
    descriptor = os.open(lock, flags, 0o666)
    try:
        if not is_taken_in(LOCK_WAIT_S, descriptor):
            raise ComponentError(
                f"{base} is held by another publisher (waited {LOCK_WAIT_S:.0f} s).",
                hint=f"end it; `fuser {lock}` names it",
            )
        yield
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync(path.parent)


@contextlib.contextmanager
def _errors_named(base: Path, problem: str) -> Iterator[None]:
    """Convert the operating system's errors to ours, with the path, the cause, the remedy."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename and str(error.filename) != str(base) else ""
        remedy = _REMEDIES.get(error.errno or 0, "check the disk")
        raise ComponentError(
            f"{problem}{where}: {error.strerror or error}.",
            hint=f"{remedy}, then resume the run",
        ) from error
