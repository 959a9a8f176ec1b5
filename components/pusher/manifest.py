"""What belongs to a version: its `manifest.json` and its files, and whether the two agree."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from components.errors import ComponentError

MANIFEST = "manifest.json"
"""The file, at the top of each version, that lists its files."""


@dataclass(frozen=True)
class FileEntry:
    """One file in a manifest: its content's SHA-256 (64 hexadecimal digits) and its size."""

    sha256: str
    bytes: int


def verify(version: Path) -> str:
    """What is wrong with a published version, in words; empty when it is what its manifest says.

    Every file is read. One that is missing, changed or not in the manifest is wrong; so is a link.
    """
    try:
        entries = read_manifest(version)
        if entries is None:
            return f"it has no {MANIFEST} that can be read"
        _, sizes = contents(version)
        sizes.pop(MANIFEST, None)
        for name in sorted(entries.keys() | sizes.keys()):
            if name not in entries:
                return f"{name} is not in its {MANIFEST}"
            if name not in sizes:
                return f"{name} is missing"
            if sizes[name] != entries[name].bytes or sha256(version / name) != entries[name].sha256:
                return f"{name} is not what its {MANIFEST} says"
    except ComponentError as error:
        return error.message
    except OSError as error:
        return f"it cannot be read: {error}"
    return ""


def sha256(path: Path) -> str:
    """The SHA-256 of a file, 64 hexadecimal digits."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def opened(path: Path) -> BufferedReader:
    """Opens a file for reading; refuses a link, also where it took the file's place just now."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW))


def digest_of(entries: Mapping[str, FileEntry]) -> str:
    """One SHA-256 over all names and contents."""
    plain = {name: entry.sha256 for name, entry in entries.items()}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def read_manifest(version: Path) -> dict[str, FileEntry] | None:
    """The files of a version by name, as its manifest lists them; None where it has no sound one."""
    try:
        with opened(version / MANIFEST) as file:
            document = json.load(file)
        entries = {name: FileEntry(**entry) for name, entry in document["files"].items()}
        return entries if document["digest"] == digest_of(entries) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def contents(folder: Path) -> tuple[list[str], dict[str, int]]:
    """All folders below, each after its parent, and the sizes of all files in bytes, by relative path.

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
                    hint="put a copy of what it stands for in its place",
                )
            if path.is_dir():
                folders.append(relative)
            else:
                sizes[relative] = path.stat().st_size
    return folders, sizes


def _raise(error: OSError) -> None:
    raise error
