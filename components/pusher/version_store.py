"""The versions of one base, in a directory or in an object store: list, verify, fetch and remove them."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from slipway.components.errors import ComponentError
from slipway.components.pusher import manifest as manifests
from slipway.components.pusher.manifest import SAVED_MODEL, Manifest, read_file
from slipway.components.pusher.publish_to_folder import remove_version
from slipway.components.pusher.signature import Trust
from slipway.components.pusher.stored_folder import folder_at
from slipway.components.pusher.versions import version_number
from slipway.components.saved_model.digest import MANIFEST, SIGNATURE
from slipway.components.store_address import is_in_store


class UntrustedError(ComponentError):
    """A version is not what a trusted key signed."""


class VersionStore(Protocol):
    """The versions of one base, a directory or address in an object store."""

    base: str

    def numbers(self) -> list[int]:
        """Return the versions that a server would load, in order; the last is the one that it serves."""

    def manifest(self, version: int) -> Manifest | None:
        """Return the version's manifest; None if it has no valid one, or none that is trusted."""

    def signature(self, version: int) -> bytes | None:
        """Return the content of the version's `model.sig`; None if it has none."""

    def problem(self, version: int) -> str:
        """Describe what is wrong with a version; empty if it matches its manifest and is trusted."""

    def fetched(self, version: int) -> AbstractContextManager[Path]:
        """Yield a version as a folder of this machine, complete and verified; a copy is temporary.

        Raises:
            ComponentError: the version does not match its manifest, or there is no room for a copy.
            UntrustedError: it is not what a trusted key signed.
        """

    def remove(self, version: int) -> None:
        """Remove a version; no server sees it in part."""


def version_store_at(base: str, trust: Trust | None = None) -> VersionStore:
    """Return the versions at a directory or an address in an object store.

    Args:
        trust: the versions to trust; None: all whose files match their manifests.

    Raises:
        ComponentError: the bucket cannot be used.
    """
    return _Bucket(base, trust) if is_in_store(base) else _Directory(base, trust)


def _refuse(base: str, version: int, problem: str, trust: Trust | None) -> None:
    if not problem:
        return
    said = f"Version {version} in {base} is not used: {problem}."
    if trust is None:
        raise ComponentError(said, hint="choose another version, or push again")
    raise UntrustedError(
        said,
        hint="push again with push.sign, or choose a version that is signed; if another key is the right "
        "one, name it: --verify-key FILE",
    )


def _problem(version: Path, trust: Trust | None) -> str:
    """Describe what is wrong with a version in a folder that nobody else can write to.

    If others could, the version might change during the check.
    """
    problem = trust.problem(read_file(version / SIGNATURE), read_file(version / MANIFEST)) if trust else ""
    return problem or manifests.verify(version)


def _early_problem(version: Path, trust: Trust) -> str:
    """Describe what is wrong with a version in a folder before its model is read."""
    try:
        _, sizes = manifests.contents(version)
    except ComponentError as error:  # a link or a device among the files
        return error.message.rstrip(".")
    except OSError as error:
        return f"it cannot be read: {error}"
    return _problem_before_reading(
        read_file(version / SIGNATURE), read_file(version / MANIFEST), sizes, trust
    )


def _problem_before_reading(
    signature: bytes | None, content: bytes | None, sizes: Mapping[str, int], trust: Trust
) -> str:
    """Describe what is wrong with a version's signature, manifest, names and sizes.

    Args:
        content: the manifest's.
        sizes: of all files of the version, in bytes.
    """
    if problem := trust.problem(signature, content):
        return problem
    manifest = None if content is None else Manifest.from_bytes(content)
    return manifests.difference(manifest, sizes) if manifest else manifests.NO_MANIFEST


def _trusted(signature: bytes | None, manifest: bytes | None, trust: Trust | None) -> Manifest | None:
    if manifest is None or (trust and trust.problem(signature, manifest)):
        return None
    return Manifest.from_bytes(manifest)


class _Directory:
    def __init__(self, base: str, trust: Trust | None) -> None:
        self.base = base
        self._trust = trust
        self._folder = Path(base)

    def numbers(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        real = self._folder.resolve()
        return sorted(
            number
            for path in self._folder.iterdir()
            if (number := version_number(path.name))
            and Path(os.path.realpath(path)).is_relative_to(real)  # Path.resolve raises for a link to itself
            and (path / SAVED_MODEL).is_file()
        )

    def manifest(self, version: int) -> Manifest | None:
        manifest = read_file(self._folder / str(version) / MANIFEST)
        return _trusted(self.signature(version), manifest, self._trust)

    def signature(self, version: int) -> bytes | None:
        return read_file(self._folder / str(version) / SIGNATURE)

    def problem(self, version: int) -> str:
        return _problem(self._folder / str(version), self._trust)

    @contextlib.contextmanager
    def fetched(self, version: int) -> Iterator[Path]:
        there = self._folder / str(version)
        if self._trust is None:
            _refuse(self.base, version, self.problem(version), None)
            yield there
            return
        # Others who can write to the base are not trusted: they could change a file after its check. So a
        # copy is used. They could also fill this disk with it: what shows without reading the model is
        # checked first.
        _refuse(self.base, version, _early_problem(there, self._trust), self._trust)
        with tempfile.TemporaryDirectory(prefix="slipway-version-") as folder:
            target = Path(folder, str(version))
            try:
                shutil.copytree(there, target, symlinks=True)
            except OSError as error:
                raise ComponentError(
                    f"Version {version} in {self.base} cannot be copied to {folder} to be verified: {error}.",
                    hint="make room there, or set TMPDIR to a folder that has it",
                ) from error
            _refuse(self.base, version, _problem(target, self._trust), self._trust)
            yield target

    def remove(self, version: int) -> None:
        remove_version(self._folder, version)


class _Bucket:
    def __init__(self, base: str, trust: Trust | None) -> None:
        self._folder = folder_at(base)
        self._trust = trust
        self.base = self._folder.address

    def numbers(self) -> list[int]:
        from slipway.components.pusher.publish_to_bucket import complete_versions

        return complete_versions(self._folder.list())

    def manifest(self, version: int) -> Manifest | None:
        signature = self.signature(version) if self._trust else None
        return _trusted(signature, self._read(version, MANIFEST), self._trust)

    def signature(self, version: int) -> bytes | None:
        return self._read(version, SIGNATURE)

    def _read(self, version: int, name: str) -> bytes | None:
        from slipway.components.pusher.publish_to_bucket import added_file

        return added_file(self._folder, self._folder.find(f"{version}/{name}"))

    def problem(self, version: int) -> str:
        from slipway.components.pusher.publish_to_bucket import signature_and_manifest, verify_in_bucket

        trust = self._trust
        problem = trust.problem(*signature_and_manifest(self._folder, version)) if trust else ""
        return problem or verify_in_bucket(self._folder, version)

    @contextlib.contextmanager
    def fetched(self, version: int) -> Iterator[Path]:
        from slipway.components.pusher.publish_to_bucket import files_of, signature_and_manifest

        seen = self._folder.list(f"{version}/")
        files = files_of(seen, version)
        if self._trust is not None:
            # As above: a download of what nobody signed could fill this disk.
            added = signature_and_manifest(self._folder, version, seen)
            sizes = {name: each.size_bytes for name, each in files.items()}
            _refuse(self.base, version, _problem_before_reading(*added, sizes, self._trust), self._trust)
        with tempfile.TemporaryDirectory(prefix="slipway-version-") as folder:
            target = Path(folder, str(version))
            target.mkdir()
            for name, stored in files.items():
                if not (target / name).resolve().is_relative_to(target.resolve()):
                    _refuse(self.base, version, f"an object's name, {name!r}, leads out of it", self._trust)
                self._folder.fetch(stored, target / name)
            # The downloaded files are verified, because they are the ones that are used.
            _refuse(self.base, version, _problem(target, self._trust), self._trust)
            yield target

    def remove(self, version: int) -> None:
        from slipway.components.pusher.publish_to_bucket import remove_version as remove_from_bucket

        remove_from_bucket(self._folder, version)
