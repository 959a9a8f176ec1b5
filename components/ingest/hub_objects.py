"""Lists and downloads the files of data sets on the Hugging Face Hub, hf://datasets/OWNER/NAME@REVISION/PATH.

A revision is looked up first, and the addresses of its files name the commit that it stands for. They are
downloaded whole, and verified by the digests that the commit holds.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from slipway.components.errors import ComponentError
from slipway.components.ingest import hub_client
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.hub_address import COMMIT, DataSet, data_set_and_path
from slipway.components.ingest.storage import GLOB, StoredFile, matches

_CHUNK_BYTES = 1 << 20
_SHA256 = re.compile("[0-9a-f]{64}")
_PARTIAL = 206  # the status of an answer that begins where it was asked to


def pinned(data_set: DataSet) -> DataSet:
    """Return a data set at the commit that its revision stands for now.

    Raises:
        FileError: there is no such data set or revision, it may not be read, or the Hub cannot be reached.
    """
    if data_set.is_pinned:
        return data_set
    found, _ = hub_client.document(data_set, f"revision/{quote(data_set.revision, safe='')}")
    commit = found.get("sha") if isinstance(found, dict) else None
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
        raise hub_client.not_the_hub(data_set)
    return data_set.at(commit)


def list_objects(pattern: str) -> list[StoredFile]:
    """Return the files that match a pattern; see `slipway.components.ingest.storage.ObjectStore`."""
    named, path = _read(pattern)
    data_set = pinned(named)
    first = GLOB.search(path)
    folder = path[: first.start() if first else None].rpartition("/")[0]
    is_deep = first is not None and "/" in path[first.start() :]
    return [
        StoredFile(f"{data_set.address}/{name}", size_bytes, checksum=digest)
        for name, size_bytes, digest in _files(data_set, folder, is_deep=is_deep)
        if matches(name, path)
    ]


def download(file: StoredFile, path: Path) -> None:
    """Write a file's content to a file here; see `slipway.components.ingest.storage.ObjectStore`."""
    data_set, name = _read(file.name)
    there = f"/datasets/{data_set.repository}/resolve/{data_set.revision}/{quote(name)}"
    try:
        with path.open("wb") as target:
            while target.tell() < file.size_bytes:
                hub_client.retried(lambda: _append(target, data_set, there, file))
        digest = _digest(path, like=file.checksum)
    except hub_client.NoEntryError as error:
        raise FileError(
            f"{file.name} was deleted after it was listed", hint="name another revision"
        ) from error
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error}", hint="check its disk") from error
    if digest != file.checksum:
        raise FileError(f"{file.name} was corrupted on the way: its checksum differs", hint="run again")


def _read(address: str) -> tuple[DataSet, str]:
    try:
        return data_set_and_path(address)
    except ComponentError as error:
        raise FileError(error.message, hint=error.hint) from error


def _files(data_set: DataSet, folder: str, *, is_deep: bool) -> Iterator[tuple[str, int, str]]:
    """Yield the name, size and digest of the files of a folder, which need not exist."""
    tree = f"tree/{data_set.revision}" + (f"/{quote(folder, safe='')}" if folder else "")
    query = f"recursive={str(is_deep).lower()}&expand=false"
    seen = set()
    while query:
        seen.add(query)
        try:
            page, query = hub_client.document(data_set, tree, query)
        except hub_client.NoEntryError:
            return
        if not isinstance(page, list) or query in seen:
            raise hub_client.not_the_hub(data_set)
        for entry in page:
            try:
                if entry["type"] == "file":
                    yield _file(entry)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise hub_client.not_the_hub(data_set) from error


def _file(entry: Any) -> tuple[str, int, str]:
    """Return name, size and digest: the SHA-256 of a large file, of others what git has for their content.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: these are not in the entry.
    """
    name, size_bytes, large = entry["path"], entry["size"], entry.get("lfs")
    digest = large["oid"] if large else entry["oid"]
    is_sound = (
        (_SHA256 if large else COMMIT).fullmatch(digest) and type(size_bytes) is int and size_bytes >= 0
    )
    if not is_sound or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError("not a file")
    name.encode()  # no half of a letter, which JSON can hold
    return name, size_bytes, digest


def _append(target: IO[bytes], data_set: DataSet, there: str, file: StoredFile) -> None:
    """Write what a file lacks, or as much of it as arrives.

    Raises:
        PassingError: nothing arrived, but may the next time.
        FileError: the Hub refuses, or its file has another size.
    """
    begin = target.tell()
    try:
        with hub_client.answered(data_set, there, {"Range": f"bytes={begin}-"} if begin else {}) as answer:
            if begin and answer.status_code != _PARTIAL:
                target.seek(0)
                target.truncate()
            for chunk in answer.iter_content(_CHUNK_BYTES):
                target.write(chunk)
                if target.tell() > file.size_bytes:
                    break
    except hub_client.PassingError:
        if target.tell() <= begin:
            raise
        return  # the rest is another request
    if (size := target.tell()) != file.size_bytes:
        arrived = "more" if size > file.size_bytes else f"{size}"
        raise FileError(f"{file.name} has {file.size_bytes} bytes, but {arrived} arrived", hint="run again")


def _digest(path: Path, *, like: str) -> str:
    """Return a file's SHA-256 if `like` is one, else the digest that git has for its content."""
    if _SHA256.fullmatch(like):
        begun = hashlib.sha256()
    else:
        begun = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as content:
        return hashlib.file_digest(content, lambda: begun).hexdigest()
