"""Lists a source's files on disk, in object stores or on the Hugging Face Hub, and brings them here."""

import fnmatch
import glob
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from slipway.components.ingest.blocks import FileError, FilePart, InputFile
from slipway.components.ingest.suffixes import as_named, is_hidden, is_in_store, left_out
from slipway.components.store_address import GS, HF, is_elsewhere

GLOB = re.compile(r"[*?\[]")
QUIET = "run again once nothing is writing there"
"""The remedy for a file that changes while it is read."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the source, as it was listed.

    Attributes:
        name: the path, or the object's address.
        size_bytes: the size as stored.
        generation: the generation of an object in Cloud Storage; for a file on disk, its modification time in
            nanoseconds.
        checksum: what an object's store reports of its content: the crc32c in Cloud Storage, the ETag on S3
            and Azure, on the Hugging Face Hub a digest of it; empty for a file on disk.
        part: the part of it to read, if not all.
        is_packed: whether Cloud Storage keeps it compressed, `Content-Encoding: gzip`, and hands it out
            unpacked; its size and checksum are of what is kept.
    """

    name: str
    size_bytes: int
    generation: int = 0
    checksum: str = ""
    part: FilePart | None = None
    is_packed: bool = False

    @property
    def read_bytes(self) -> int:
        """How much of it is to be read."""
        return self.part.size_bytes if self.part else self.size_bytes


class ObjectStore(Protocol):
    """How the objects of one kind of store, or of the Hub, are listed and downloaded: a module for each."""

    def list_objects(self, pattern: str) -> list[StoredFile]:
        """Return the objects that match a pattern, in any order.

        Raises:
            FileError: the bucket cannot be listed.
        """

    def download(self, file: StoredFile, path: Path) -> None:
        """Write the content of an object as it was listed to a file.

        Raises:
            FileError: the object was deleted or replaced since, may not be read, or arrived damaged.
        """


def _store_of(address: str) -> ObjectStore:
    # Imported on use, because most sources are on disk.
    if address.startswith(GS):
        from slipway.components.ingest import google_objects

        return google_objects
    if address.startswith(HF):
        from slipway.components.ingest import hub_objects

        return hub_objects
    from slipway.components.ingest import s3_and_azure_objects

    return s3_and_azure_objects


def find_files(pattern: str) -> list[StoredFile]:
    """Return the files that match a pattern and are not hidden, sorted by name; maybe none.

    Args:
        pattern: a path, or an address in an object store; `*`, `?` and `[...]` match within one level.

    Raises:
        FileError: the folder or bucket cannot be listed.
    """
    files = _store_of(pattern).list_objects(pattern) if is_elsewhere(pattern) else _list_paths(pattern)
    return sorted(files, key=lambda file: file.name)


def list_files(pattern: str) -> list[StoredFile]:
    """Return the files that match a pattern as `find_files` does, at least one.

    Raises:
        FileError: nothing matches, the folder or bucket cannot be listed, or only some of the format's files
            in a folder of a store match.
    """
    files = _in_folder(pattern) if is_in_store(pattern) else find_files(pattern)
    if not files:
        raise FileError(f"{as_named(pattern)} matches no file", hint="check data.source")
    return files


def _in_folder(pattern: str) -> list[StoredFile]:
    folder, _, last = pattern.rpartition("/")
    named = [(file.name.rpartition("/")[2], file) for file in find_files(f"{folder}/*")]
    if words := left_out([name for name, _ in named], last, Path(last).suffix, folder=folder):
        raise FileError(words[0], hint=words[1])
    return [file for name, file in named if fnmatch.fnmatchcase(name, last)]


@contextmanager
def fetched(file: StoredFile) -> Iterator[InputFile]:
    """Provide the file on this machine for as long as the context lasts.

    Raises:
        FileError: the file was deleted, replaced or written to since it was listed, even inside the context;
            it may not be read, or arrived damaged; or the machine ran out of memory inside the context.
    """
    try:
        with _fetched(file) as here:
            yield here
    except MemoryError as error:
        raise FileError(
            f"this machine ran out of memory while it read {file.name}",
            hint="use one process, beam.options: {direct_num_workers: 1}, or smaller rows, see data.limits",
        ) from error


@contextmanager
def _fetched(file: StoredFile) -> Iterator[InputFile]:
    if not is_elsewhere(file.name):
        _check_on_disk(file)
        yield InputFile(name=file.name, path=Path(file.name), part=file.part)
        _check_on_disk(file)  # rows from before and after a change never existed together
        return
    with tempfile.TemporaryDirectory(prefix="slipway-ingest-") as folder:
        # The suffix says how the file is compressed.
        path = Path(folder) / f"object{Path(file.name).suffix}"
        _store_of(file.name).download(file, path)
        yield InputFile(name=file.name, path=path)


def size_bytes(path: Path) -> int:
    """Return how much of a download has arrived; 0 before its file is there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _list_paths(pattern: str) -> list[StoredFile]:
    # Strings, not Path objects, which would be slow for a folder of many images.
    found = [(path, os.stat(path)) for path in glob.glob(pattern) if os.path.isfile(path)]  # noqa: PTH113, PTH116, PTH207
    found = [each for each in found if not is_hidden(each[0], pattern)]
    if not found:
        _check_folder(pattern)
    return [StoredFile(path, status.st_size, status.st_mtime_ns) for path, status in found]


def _check_folder(pattern: str) -> None:
    """Check that the pattern's folder may be listed, since one that may not seems empty to glob."""
    folder = Path(os.path.dirname(GLOB.split(pattern, maxsplit=1)[0]))  # noqa: PTH120  ("a/" is in "a")
    while not os.access(folder, os.F_OK, effective_ids=True) and folder != folder.parent:
        folder = folder.parent
    if not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
        raise _denied(str(folder))


def _check_on_disk(file: StoredFile) -> None:
    """Check that a file may be read and has not changed since it was listed."""
    try:
        descriptor = os.open(file.name, os.O_RDONLY)
        status = os.fstat(descriptor)
        os.close(descriptor)
    except PermissionError as error:
        raise _denied(file.name) from error
    except FileNotFoundError as error:
        raise FileError(f"{file.name} was deleted after it was listed", hint=QUIET) from error
    except OSError as error:
        raise FileError(f"{file.name} cannot be read: {error.strerror}", hint="check its disk") from error
    if (status.st_size, status.st_mtime_ns) != (file.size_bytes, file.generation):
        raise FileError(f"{file.name} was replaced or written to after it was listed", hint=QUIET)


def _denied(path: str) -> FileError:
    return FileError(
        f"{path}: permission denied",
        hint=f"let user {os.geteuid()} read it (chmod, chown), or run as a user who may",
    )


def matches(name: str, pattern: str) -> bool:
    """Return True if an object's name in its bucket matches a pattern, level by level, and is not hidden."""
    parts, wanted = name.split("/"), pattern.split("/")
    is_match = len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))
    return is_match and not is_hidden(name, pattern)
