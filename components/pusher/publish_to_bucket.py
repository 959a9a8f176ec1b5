"""Publishes a model as a version in a folder of an object store: completely or not at all.

<base>/<version>/                 TF Serving's layout; complete with `saved_model.pb`, which is written last
<base>/.claims/<version>          each number is assigned once, forever: one version has one publisher
<base>/.pushing/<model>           publishers of one model take turns, see `model_lock`
<base>/.staging/<version>/...     `saved_model.pb`, which the store copies into place if it is unchanged

That condition keeps a publisher that was considered dead from completing a version: a cleanup first replaces
the staged file by a tombstone, and then checks whether the version is complete. Where a store cannot copy on
that condition, the copy is two writes, and a cleanup that finds it begun ends it instead of preventing it.
"""

import contextlib
import hashlib
import itertools
import logging
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.pusher.claim_owner import is_gone, this_process
from slipway.components.pusher.manifest import (
    MOST_BYTES,
    NO_MANIFEST,
    SAVED_MODEL,
    FileEntry,
    Manifest,
    difference,
    holds,
    model_contents,
    sha256,
)
from slipway.components.pusher.manifest_contents import Provenance
from slipway.components.pusher.model_lock import model_locked, remove_dead_locks
from slipway.components.pusher.stored_folder import (
    EMPTY_CRC32C,
    PROCESS,
    Stored,
    StoredFolder,
    TakenError,
    crc32c_of,
    folder_at,
)
from slipway.components.pusher.version_files import NO_EXTRAS, Extras, sealed
from slipway.components.pusher.versions import Published, next_version, version_number
from slipway.components.saved_model.digest import MANIFEST, SIGNATURE

DEAD_AFTER = timedelta(hours=1)
"""A publisher on another machine that wrote nothing for this long is considered dead."""

_CLAIMS = ".claims"
_STAGING = ".staging"
_UPLOADS_AT_ONCE = 8
_READ_AT_ONCE = 4
_TOMBSTONE = "slipway-tombstone"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _File:
    """A file to upload: its content, and that content's checksum."""

    content: Path | bytes
    crc32c: str


def publish_to_bucket(
    model_folder: Path, *, base: str, provenance: Provenance | None = None, extras: Extras = NO_EXTRAS
) -> Published:
    """Make the model the newest version in `base`, unless it already is, with the same signature.

    If the process is killed or fails at any moment, there is either no `saved_model.pb` or a complete
    version; the next call removes the remains once the publisher is known to be dead, or finds the version.

    Args:
        model_folder: a SavedModel: regular files and folders only. Empty folders and the files of an earlier
            push are left out.
        base: the folder of the versions in an object store; the bucket must exist.
        provenance, extras: see `slipway.components.pusher.version_files.sealed`.

    Raises:
        ComponentError: `model_folder` is not a SavedModel or holds a link; the bucket is missing, denies
            access or does not respond; the uploaded files are not those that were sent.
    """
    try:
        _, sizes = model_contents(model_folder)
        with contextlib.closing(folder_at(base, writer=secrets.token_hex(16))) as folder:
            return _publish(folder, model_folder, sizes, provenance, extras)
    except OSError as error:
        raise ComponentError(f"{model_folder} cannot be read: {error}.", hint="check the disk") from error


def _publish(
    folder: StoredFolder, model: Path, sizes: Mapping[str, int], provenance: Provenance | None, extras: Extras
) -> Published:
    seen = folder.list()
    _remove_leftovers(folder, seen)
    remove_dead_locks(folder, seen, dead_after=DEAD_AFTER)
    if there := _found(folder, seen, model, sizes, extras):
        return there
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        digests = dict(zip(sizes, pool.map(lambda name: sha256(model / name), sizes), strict=True))
        checksums = dict(zip(sizes, pool.map(lambda name: crc32c_of(model / name), sizes), strict=True))
    entries = {name: FileEntry(digests[name], size) for name, size in sizes.items()}
    files = {name: _File(model / name, checksums[name]) for name in sizes}
    for name, content in sealed(entries, provenance, extras).items():
        files[name] = _File(content, crc32c_of(content))
    with model_locked(folder, Manifest(entries).model_digest, dead_after=DEAD_AFTER):
        seen = folder.list()
        # Another publisher may have published the model while this one waited.
        return _found(folder, seen, model, sizes, extras) or _published(folder, seen, files)


def _found(
    folder: StoredFolder, seen: Mapping[str, Stored], model: Path, sizes: Mapping[str, int], extras: Extras
) -> Published | None:
    """Return the newest version if it is this model, intact and with the extras; else None."""
    newest = max(complete_versions(seen), default=0)
    is_there = (
        newest
        and _is_same(folder, seen, newest, model, sizes)
        and extras.are_there(*signature_and_manifest(folder, newest, seen))
    )
    return Published(newest, folder.address, was_there=True) if is_there else None


def _published(folder: StoredFolder, seen: Mapping[str, Stored], files: Mapping[str, _File]) -> Published:
    version = _claim(folder, seen)
    try:
        _write(folder, version, files)
    except BaseException:
        # The next publisher removes what cannot be removed now; report the first error.
        with contextlib.suppress(ComponentError):
            _remove(folder, version, folder.list())
        raise
    return Published(version, folder.address, was_there=False)


def remove_version(folder: StoredFolder, version: int) -> None:
    """Remove a version, first the file that makes servers load it; a missing version is not an error."""
    files = files_of(folder.list(f"{version}/"), version)
    for name in sorted(files, key=lambda name: name != SAVED_MODEL):
        folder.delete(files[name])
    # A publisher that was stopped in its last step may have created it anew, see `_complete`.
    if late := folder.find(f"{version}/{SAVED_MODEL}"):
        folder.delete(late)


def complete_versions(seen: Mapping[str, Stored]) -> list[int]:
    """Return the versions that a server would load, from all objects of a base."""
    found = (name.split("/") for name in seen if name.endswith(f"/{SAVED_MODEL}"))
    return sorted(number for parts in found if len(parts) == 2 and (number := version_number(parts[0])))


def verify_in_bucket(folder: StoredFolder, version: int) -> str:
    """Describe what is wrong with a version; empty if every byte matches its manifest."""
    seen = files_of(folder.list(f"{version}/"), version)
    manifest = manifest_of(folder, seen)
    if manifest is None:
        return NO_MANIFEST
    if problem := difference(manifest, {name: each.size_bytes for name, each in seen.items()}):
        return problem
    for name, entry in manifest.files.items():
        if hashlib.sha256(folder.read(seen[name])).hexdigest() != entry.sha256:
            return f"{name} does not match its {MANIFEST}"
    return ""


def files_of(seen: Mapping[str, Stored], version: int) -> dict[str, Stored]:
    """Return the objects of one version, by their path in it."""
    prefix = f"{version}/"
    return {name.removeprefix(prefix): each for name, each in seen.items() if name.startswith(prefix)}


def manifest_of(folder: StoredFolder, files: Mapping[str, Stored]) -> Manifest | None:
    """Return the manifest among a version's files; None if there is no valid one."""
    content = added_file(folder, files.get(MANIFEST))
    return None if content is None else Manifest.from_bytes(content)


def added_file(folder: StoredFolder, stored: Stored | None) -> bytes | None:
    """Return the content of a manifest or a signature; None if it is missing, or too long for one."""
    return folder.read(stored) if stored and stored.size_bytes <= MOST_BYTES else None


def signature_and_manifest(
    folder: StoredFolder, version: int, seen: Mapping[str, Stored] | None = None
) -> tuple[bytes | None, bytes | None]:
    """Return a version's signature and manifest, each None if missing.

    Args:
        seen: the objects of the base; None: they are listed.
    """
    files = files_of(folder.list(f"{version}/") if seen is None else seen, version)
    signature, manifest = (added_file(folder, files.get(name)) for name in (SIGNATURE, MANIFEST))
    return signature, manifest


def _is_same(
    folder: StoredFolder, seen: Mapping[str, Stored], version: int, model: Path, sizes: Mapping[str, int]
) -> bool:
    """Return True if a version is intact and holds the model of this folder."""
    files = files_of(seen, version)
    manifest = manifest_of(folder, files)
    if manifest is None or not holds(manifest, model, sizes):
        return False
    problem = difference(manifest, {name: each.size_bytes for name, each in files.items()})
    # The model's files are on this machine: nothing needs to be downloaded for the comparison.
    changed = [] if problem else [name for name in sizes if files[name].crc32c != crc32c_of(model / name)]
    if problem or changed:
        why = problem or f"{changed[0]} was changed"
        _log.warning("%s/%d is damaged, so the model is pushed again: %s.", folder.address, version, why)
        return False
    return True


def _claim(folder: StoredFolder, seen: Mapping[str, Stored]) -> int:
    # Numbers of versions and of claims.
    taken = {number for name in seen for part in name.split("/")[:2] if (number := version_number(part))}
    for version in itertools.count(next_version(taken, base=folder.address)):
        with contextlib.suppress(TakenError):
            labels = {PROCESS: this_process()}
            folder.create(f"{_CLAIMS}/{version}", b"", crc32c=EMPTY_CRC32C, labels=labels)
            return version
    raise AssertionError  # there is always a next number


def _write(folder: StoredFolder, version: int, files: Mapping[str, _File]) -> None:
    places = {
        _staged(version) if name == SAVED_MODEL else f"{version}/{name}": file for name, file in files.items()
    }

    def upload(name: str) -> None:
        folder.create(name, places[name].content, crc32c=places[name].crc32c)

    largest_first = sorted(places, key=lambda name: -_size(places[name]))
    with ThreadPoolExecutor(_UPLOADS_AT_ONCE) as pool:
        list(pool.map(upload, largest_first))
    there = folder.list(f"{version}/") | folder.list(f"{_STAGING}/{version}/")
    wrong = [name for name, file in places.items() if not _is_whole(folder, there.get(name), file)]
    if wrong or there.keys() != places.keys():
        strange = (wrong or sorted(there.keys() - places.keys()))[0]
        raise ComponentError(
            f"{folder.address}/{strange} is not what was uploaded; version {version} is not published.",
            hint="push again; if it happens again, find out who else writes there",
        )
    staged = there[_staged(version)]
    _complete(folder, version, staged)
    with contextlib.suppress(ComponentError):  # the version is complete: the next publisher tidies up
        folder.delete(staged)


def _is_whole(folder: StoredFolder, there: Stored | None, file: _File) -> bool:
    # On S3 and Azure the checksum is what was noted, so the size says more.
    return there is not None and folder.is_own(there, file.crc32c) and there.size_bytes == _size(file)


def _complete(folder: StoredFolder, version: int, staged: Stored) -> None:
    """Copy the staged file to its place.

    Where that takes two writes, others may have ended the copy and removed the version between them: then the
    second one made a version of one file, which is taken back.

    Raises:
        TakenError: the version was removed meanwhile.
    """
    folder.copy(staged, f"{version}/{SAVED_MODEL}")
    if not folder.copies_in_two_writes:
        return
    files = files_of(folder.list(f"{version}/"), version)
    manifest = manifest_of(folder, files)
    if manifest is None or difference(manifest, {name: each.size_bytes for name, each in files.items()}):
        if SAVED_MODEL in files:
            folder.delete(files[SAVED_MODEL])
        raise TakenError(
            f"{folder.address}/{version} was removed by another publisher while it was being completed.",
            hint="push again",
        )


def _size(file: _File) -> int:
    return len(file.content) if isinstance(file.content, bytes) else file.content.stat().st_size


def _remove_leftovers(folder: StoredFolder, seen: Mapping[str, Stored]) -> None:
    """Remove what dead publishers left: their process has ended, or they wrote nothing for long."""
    complete = set(complete_versions(seen))
    for name, claim in seen.items():
        version = version_number(name.removeprefix(f"{_CLAIMS}/"))
        if version is None:
            continue
        staged = seen.get(_staged(version))
        left = [staged] if staged and _TOMBSTONE not in staged.labels else []
        if version not in complete:
            left += files_of(seen, version).values()
        if left and _is_dead(claim, left):
            _log.info("Removing the remains of %s/%d: its publisher did not finish.", folder.address, version)
            _remove(folder, version, seen)


def _is_dead(claim: Stored, left: list[Stored]) -> bool:
    last = max(each.written for each in [claim, *left])
    return is_gone(claim.labels.get(PROCESS, "")) or datetime.now(UTC) - last > DEAD_AFTER


def _remove(folder: StoredFolder, version: int, seen: Mapping[str, Stored]) -> None:
    """Remove an incomplete version so that it can never be completed; or a complete one's staged file."""
    staged = seen.get(_staged(version))
    if staged is not None and folder.is_being_copied(staged) and f"{version}/{SAVED_MODEL}" not in seen:
        with contextlib.suppress(TakenError):  # another process has ended it
            _complete(folder, version, staged)  # all else of the version was verified before
            folder.delete(staged)
    elif f"{version}/{SAVED_MODEL}" not in seen:
        with contextlib.suppress(TakenError):  # another process is cleaning up, or the publisher is alive
            if staged is None or _TOMBSTONE not in staged.labels:
                labels = {_TOMBSTONE: "yes"}
                folder.create(_staged(version), b"", crc32c=EMPTY_CRC32C, labels=labels, over=staged)
            if folder.find(f"{version}/{SAVED_MODEL}") is None:
                for stored in files_of(folder.list(f"{version}/"), version).values():
                    folder.delete(stored)
    elif staged is not None:
        folder.delete(staged)


def _staged(version: int) -> str:
    return f"{_STAGING}/{version}/{SAVED_MODEL}"
