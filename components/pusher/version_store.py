"""The versions of one base, in a directory or in Cloud Storage: listed, checked, fetched, thinned out."""

import contextlib
import logging
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from slipway.components.errors import ComponentError
from slipway.components.pusher import manifest as manifests
from slipway.components.pusher.manifest import SAVED_MODEL, Manifest, read_manifest
from slipway.components.pusher.publish import remove_version
from slipway.components.pusher.versions import GS, version_number
from slipway.components.saved_model.digest import MANIFEST

_log = logging.getLogger(__name__)


class Shelf(Protocol):
    """The versions of one base, a directory or gs:// address."""

    base: str

    def numbers(self) -> list[int]:
        """The versions that a server would load, in order; the last is the one it serves."""

    def manifest(self, version: int) -> Manifest | None:
        """Return the version's manifest; None if it has no sound one."""

    def problem(self, version: int) -> str:
        """Describe what is wrong with a version; empty if every byte matches its manifest."""

    def fetched(self, version: int) -> AbstractContextManager[Path]:
        """A version as a folder of this machine, whole and checked, for as long as it is needed.

        Raises:
            ComponentError: it is not what its manifest says.
        """

    def remove(self, version: int) -> None:
        """Removes a version; no server sees it in part."""


def shelf_at(base: str) -> Shelf:
    """The versions at a directory or a gs:// address.

    Raises:
        ComponentError: the bucket cannot be used.
    """
    return _Bucket(base) if base.startswith(GS) else _Directory(base)


def thin_out(base: str, *, keep: int) -> list[int]:
    """Removes the oldest versions until `keep` are left; never the newest, nor one that no push made.

    Args:
        base: the directory or gs:// address.
        keep: how many stay, >= 1.

    Returns:
        The versions that were removed.
    """
    shelf = shelf_at(base)
    older = shelf.numbers()[: -max(keep, 1)]
    removed = [version for version in older if shelf.manifest(version) is not None]
    for version in removed:
        shelf.remove(version)
        _log.info("Removed version %d of %s: push.keep is %d.", version, base, keep)
    return removed


def _refuse(base: str, version: int, problem: str) -> None:
    if problem:
        raise ComponentError(
            f"Version {version} in {base} is not used: {problem}.",
            hint="choose another version, or push again",
        )


class _Directory:
    def __init__(self, base: str) -> None:
        self.base = base
        self._folder = Path(base)

    def numbers(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        real = self._folder.resolve()
        return sorted(
            number
            for path in self._folder.iterdir()
            if (number := version_number(path.name))
            and path.resolve().is_relative_to(real)
            and (path / SAVED_MODEL).is_file()
        )

    def manifest(self, version: int) -> Manifest | None:
        return read_manifest(self._folder / str(version))

    def problem(self, version: int) -> str:
        return manifests.verify(self._folder / str(version))

    @contextlib.contextmanager
    def fetched(self, version: int) -> Iterator[Path]:
        _refuse(self.base, version, self.problem(version))
        yield self._folder / str(version)

    def remove(self, version: int) -> None:
        remove_version(self._folder, version)


class _Bucket:
    def __init__(self, base: str) -> None:
        from slipway.components.pusher.bucket import Folder

        self._folder = Folder(base)
        self.base = self._folder.address

    def numbers(self) -> list[int]:
        from slipway.components.pusher.publish_to_bucket import complete_versions

        return complete_versions(self._folder.list())

    def manifest(self, version: int) -> Manifest | None:
        from slipway.components.pusher.publish_to_bucket import manifest_of

        stored = self._folder.find(f"{version}/{MANIFEST}")
        return manifest_of(self._folder, {MANIFEST: stored} if stored else {})

    def problem(self, version: int) -> str:
        from slipway.components.pusher.publish_to_bucket import verify_in_bucket

        return verify_in_bucket(self._folder, version)

    @contextlib.contextmanager
    def fetched(self, version: int) -> Iterator[Path]:
        from slipway.components.pusher.publish_to_bucket import files_of

        with tempfile.TemporaryDirectory(prefix="slipway-version-") as folder:
            target = Path(folder, str(version))
            target.mkdir()
            for name, stored in files_of(self._folder.list(f"{version}/"), version).items():
                if not (target / name).resolve().is_relative_to(target.resolve()):
                    _refuse(self.base, version, f"an object's name, {name!r}, leads out of it")
                self._folder.fetch(stored, target / name)
            # The files are checked where they are used.
            _refuse(self.base, version, manifests.verify(target))
            yield target

    def remove(self, version: int) -> None:
        from slipway.components.pusher.publish_to_bucket import remove_version as remove_from_bucket

        remove_from_bucket(self._folder, version)
