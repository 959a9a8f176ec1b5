"""Destinations for versions: a directory, or a folder of an object store, and from there an endpoint."""

import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.components.errors import ComponentError
from slipway.components.pusher.endpoint import EndpointSettings
from slipway.components.pusher.manifest_contents import Provenance, Republished
from slipway.components.pusher.publish_to_folder import publish
from slipway.components.pusher.version_files import NO_EXTRAS, Extras
from slipway.components.pusher.version_store import version_store_at
from slipway.components.pusher.versions import Published
from slipway.components.store_address import AZ, S3, is_in_store

if TYPE_CHECKING:
    from slipway.components.pusher.vertex_endpoint import VertexEndpoint


def push(
    model_folder: Path, *, base: str, provenance: Provenance | None = None, extras: Extras = NO_EXTRAS
) -> Published:
    """Publish a model to `base`: to a directory with `publish`, to a store with `publish_to_bucket`."""
    if is_in_store(base):
        from slipway.components.pusher.publish_to_bucket import publish_to_bucket

        return publish_to_bucket(model_folder, base=base, provenance=provenance, extras=extras)
    return publish(model_folder, base=Path(base), provenance=provenance, extras=extras)


def find_other_workload(base: str, workload: str) -> str:
    """Return the workload that pushed a base's newest version, if it is another one; else empty.

    A server would take the one's model for the other's, and `push.keep` would remove the other's versions.
    A name with "-" for "_" is the same one: the name of a job, which a cloud run needs, has no underscore.

    Args:
        workload: the name of the one that is to push there; empty: any may.

    Raises:
        ComponentError: the bucket cannot be used.
        OSError: the directory cannot be read.
    """
    if not workload:
        return ""
    store = version_store_at(base)
    numbers = store.numbers()
    manifest = store.manifest(numbers[-1]) if numbers else None
    pushed_by = manifest.provenance.get("workload", "") if manifest else ""
    is_own = pushed_by.replace("_", "-") == workload.replace("_", "-")
    return "" if is_own else pushed_by


def find_rollback(base: str, model_digest: str) -> Republished | None:
    """Return the rollback that took a model out of service; None if none did since the last push, or the
    model is live again.

    Args:
        model_digest: see `Manifest.model_digest`.

    Raises:
        ComponentError: the bucket cannot be used.
        OSError: the directory cannot be read.
    """
    store = version_store_at(base)
    version = max(store.numbers(), default=0)
    manifest = store.manifest(version) if version else None
    if manifest is None or manifest.model_digest == model_digest:
        return None
    while manifest and (again := manifest.provenance.get("republished")):
        # Smaller than the one that replaced it, so the search ends; an older manifest may not name it.
        if not 0 < (replaced := again.get("instead_of", 0)) < version:
            break
        version, manifest = replaced, store.manifest(replaced)
        if model_digest == (manifest.model_digest if manifest else again.get("instead_of_model")):
            return again
    return None


def remedy_of_rollback(base: str, version: int) -> str:
    """Return what can be done where the model of a version is not pushed because it was rolled back.

    Raises:
        ComponentError: the bucket cannot be used.
        OSError: the directory cannot be read.
    """
    if version in version_store_at(base).numbers():
        return f"train another model; or if this one is to be served after all: rollback --to {version}"
    return f"train another model; version {version} is gone, so that no rollback can bring this one back"


def find_unwritable(base: str, *, workload: str = "") -> str:
    """Return why no version can be published to a base; empty if one can, as far as is known before.

    In S3 and Azure, the check lists a folder and writes an object, which it deletes: that shows the library,
    the account, the bucket, the permissions, and whether the store heeds the conditions of a push. In gs://,
    it only looks whose versions are there. In a directory, it creates an unnamed temporary file, because
    permissions do not reveal a file system that accepts no files.

    Args:
        workload: as for `find_other_workload`.
    """
    if base.startswith((S3, AZ)):
        return _find_unreachable(base, workload)
    if is_in_store(base):
        try:
            return _held_by(find_other_workload(base, workload))
        except ComponentError as error:
            return _cannot_be_used(base, error)
    there = Path(base)
    try:
        while not there.exists():
            there = there.parent
        if not there.is_dir():
            return f"{there} is not a directory"
        tempfile.TemporaryFile(dir=there).close()
        return _held_by(find_other_workload(base, workload))
    except OSError as error:
        return f"{there} cannot be written to: {error.strerror}"


def _held_by(other: str) -> str:
    return f"it holds the versions of the workload {other!r}" if other else ""


def _find_unreachable(base: str, workload: str) -> str:
    from slipway.components.pusher.model_lock import LOCKS
    from slipway.components.pusher.stored_folder import EMPTY_CRC32C, folder_at

    token = secrets.token_hex(8)
    name = f"{LOCKS}/{token}"  # what a killed check leaves there, a later push removes
    try:
        folder = folder_at(base, writer=token)
        folder.list(f"{LOCKS}/")  # which holds little
        folder.create(name, b"", crc32c=EMPTY_CRC32C)
        if probe := folder.find(name):
            folder.delete(probe)
        return _held_by(find_other_workload(base, workload))
    except ComponentError as error:
        return _cannot_be_used(base, error)


def _cannot_be_used(base: str, error: ComponentError) -> str:
    return f"{error.message.removeprefix(f'{base}: ').rstrip('.')}; {error.hint}"


def deployment_at(settings: EndpointSettings | None) -> "VertexEndpoint | None":
    """Return the endpoint to deploy versions to after the push; None if there is none.

    Raises:
        ComponentError: there are no valid credentials.
    """
    if settings is None:
        return None
    from slipway.components.pusher.vertex_endpoint import VertexEndpoint

    return VertexEndpoint(settings)
