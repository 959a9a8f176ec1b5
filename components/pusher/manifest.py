"""A version's `manifest.json`, and checks of the version's files against it."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Self

from slipway.components.errors import ComponentError
from slipway.components.finite_json import parsed
from slipway.components.pusher.manifest_contents import Provenance, is_provenance
from slipway.components.saved_model.digest import ADDED_FILES, MANIFEST, SIGNATURE, combined_digest

SAVED_MODEL = "saved_model.pb"
"""The file that makes a folder a model: servers load a folder once it is there."""

NO_MANIFEST = f"it has no readable {MANIFEST}"
CHANGED = f"{{name}} does not match its {MANIFEST}"

_FORMAT = 1
MOST_BYTES = 64 * 2**20
"""Of a manifest or a signature; a longer one counts as unreadable."""


@dataclass(frozen=True)
class FileEntry:
    """One file in a manifest: its content's SHA-256 (64 hexadecimal digits) and its size."""

    sha256: str
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """The content of a version's `manifest.json`.

    Attributes:
        files: every file of the version except the manifest and its signature, by relative path.
        provenance: where the model comes from and how good it is.
    """

    files: Mapping[str, FileEntry]
    provenance: Provenance = field(default_factory=lambda: Provenance())

    @property
    def model_files(self) -> dict[str, FileEntry]:
        """The files of the model, without those that the push added."""
        return {name: entry for name, entry in self.files.items() if name not in ADDED_FILES}

    @property
    def model_digest(self) -> str:
        """One SHA-256 over names and contents of the model's files: equal for equal models."""
        return combined_digest({name: entry.sha256 for name, entry in self.files.items()})

    def to_bytes(self) -> bytes:
        """Return the content of the file, with a digest of the rest of it; equal manifests give equal
        bytes."""
        document = {
            **self.provenance,
            "format": _FORMAT,
            "files": {name: asdict(entry) for name, entry in sorted(self.files.items())},
        }
        return (json.dumps({**document, "digest": _digest(document)}, indent=2) + "\n").encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self | None:
        """Parse the output of `to_bytes`; return None if it was changed by as much as a space.

        None, too, if a file's entry or a key of the provenance is of another type than `to_bytes` writes, as
        in a manifest that was made by hand.
        """
        try:
            document = parsed(content)
            files = {name: FileEntry(**entry) for name, entry in document["files"].items()}
            for own in ("format", "files", "digest"):
                del document[own]
            if not all(type(each.sha256) is str and type(each.bytes) is int for each in files.values()):
                return None
            if not is_provenance(document):
                return None
            found = cls(files, document)
            return found if found.to_bytes() == content else None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


def _digest(document: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def verify(version: Path) -> str:
    """Describe what is wrong with a published version; empty if it matches its manifest.

    Every file is read. A file that is missing, changed or not in the manifest is wrong; so is a link.
    """
    try:
        manifest = read_manifest(version)
        if manifest is None:
            return NO_MANIFEST
        _, sizes = contents(version)
        if problem := difference(manifest, sizes):
            return problem
        for name in sorted(manifest.files):
            if sha256(version / name) != manifest.files[name].sha256:
                return CHANGED.format(name=name)
    except ComponentError as error:
        return error.message
    except OSError as error:
        return f"it cannot be read: {error}"
    return ""


def difference(manifest: Manifest, sizes: Mapping[str, int]) -> str:
    """Describe what is wrong with the names and sizes (bytes) of a version's files; "" if nothing.

    Args:
        sizes: of all its files. The manifest and its signature are ignored: they are verified by other means.
    """
    for name in sorted(manifest.files.keys() | (sizes.keys() - {MANIFEST, SIGNATURE})):
        if name not in manifest.files:
            return f"{name} is not in its {MANIFEST}"
        if name not in sizes:
            return f"{name} is missing"
        if sizes[name] != manifest.files[name].bytes:
            return CHANGED.format(name=name)
    return ""


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def opened(path: Path) -> BufferedReader:
    """Open a file for reading.

    Raises:
        OSError: it is a link, a device or a pipe, even if that replaced the file just now.
    """
    return open(path, "rb", opener=_open_file)


def _open_file(name: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a pipe waits for a writer, forever if there is none.
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "It is no regular file", name)
    return descriptor


def read_manifest(version: Path) -> Manifest | None:
    """Return the version's manifest; None if it has no valid one."""
    content = read_file(version / MANIFEST)
    return None if content is None else Manifest.from_bytes(content)


def read_file(path: Path) -> bytes | None:
    """Return the content of a manifest or a signature; None if it cannot be read, or is too long for one."""
    try:
        with opened(path) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError:
        return None
    return content if len(content) <= MOST_BYTES else None


def model_contents(folder: Path) -> tuple[list[str], dict[str, int]]:
    """Return the folders and files of a model like `contents`, without the files that an earlier push added.

    Raises:
        ComponentError: the folder holds no SavedModel, or more than regular files and folders.
        OSError: the folder cannot be read.
    """
    folders, sizes = contents(folder)
    for name in ADDED_FILES:
        sizes.pop(name, None)
    if SAVED_MODEL not in sizes:
        raise ComponentError(
            f"{folder} holds no {SAVED_MODEL}, so no server can load it.",
            hint="train again: run from there (--from Trainer), or else without the cache",
        )
    return folders, sizes


def holds(manifest: Manifest | None, folder: Path, sizes: Mapping[str, int]) -> bool:
    """Return True if a version's manifest lists exactly the model in a folder with files of these sizes."""
    files = manifest.model_files if manifest else {}
    if sizes != {name: entry.bytes for name, entry in files.items()}:
        return False
    # Small files first: a different model usually shows in the first few bytes.
    return all(sha256(folder / name) == files[name].sha256 for name in sorted(sizes, key=sizes.__getitem__))


def contents(folder: Path) -> tuple[list[str], dict[str, int]]:
    """Return all folders below, parents first, and the sizes of all files in bytes, by relative path.

    Raises:
        ComponentError: there is a link, a device or a pipe.
        OSError: the folder cannot be read.
    """
    folders: list[str] = []
    sizes: dict[str, int] = {}
    for parent, below, files in os.walk(folder, onerror=_raise):
        for name in [*below, *files]:
            path = Path(parent, name)
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise ComponentError(
                    f"{path} is a link or a special file; a model is made of files and folders.",
                    hint="replace it with a copy of its target",
                )
            if path.is_dir():
                folders.append(relative)
            else:
                sizes[relative] = path.stat().st_size
    return folders, sizes


def _raise(error: OSError) -> None:
    raise error
