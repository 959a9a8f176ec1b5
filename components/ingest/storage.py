"""Lists a source's files on disk or gs://, pins their content, and fetches them to this machine.

Cloud Storage objects are downloaded whole, at the generation that was listed, and verified by checksum,
because the client does not verify partial reads.
"""

import fnmatch
import glob
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.components.ingest.blocks import FileError, InputFile

if TYPE_CHECKING:
    from google.cloud.storage import Client

GS = "gs://"
_GLOB = re.compile(r"[*?\[]")
_TIMEOUT_S = 60.0  # per request; the client retries transient failures
_RETRY_S = 300.0
_QUIET = "run again once nothing is writing there"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the source, as it was listed.

    Attributes:
        name: the path, or gs://bucket/object.
        size_bytes: the size as stored.
        generation: the generation of an object; for a file on disk, its modification time in nanoseconds.
        checksum: the crc32c of an object as its store reports it; empty for a file on disk.
    """

    name: str
    size_bytes: int
    generation: int = 0
    checksum: str = ""


def list_files(pattern: str) -> list[StoredFile]:
    """Return the files that match a pattern, sorted by name.

    Args:
        pattern: a path or gs:// address; `*`, `?` and `[...]` match within one level of folders.

    Raises:
        FileError: nothing matches, or the folder or bucket cannot be listed.
    """
    files = _list_objects(pattern) if pattern.startswith(GS) else _list_paths(pattern)
    if not files:
        raise FileError(f"{pattern} matches no file", hint="check data.source")
    return sorted(files, key=lambda file: file.name)


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
    if not file.name.startswith(GS):
        _check_on_disk(file)
        yield InputFile(name=file.name, path=Path(file.name))
        _check_on_disk(file)  # rows from before and after a change never existed together
        return
    with tempfile.TemporaryDirectory(prefix="slipway-ingest-") as folder:
        # The suffix says how the file is compressed.
        path = Path(folder) / f"object{Path(file.name).suffix}"
        _download(file, path)
        yield InputFile(name=file.name, path=path)


def _list_paths(pattern: str) -> list[StoredFile]:
    # Strings, not Path objects, which would be slow for a folder of many images.
    found = [(path, os.stat(path)) for path in glob.glob(pattern) if os.path.isfile(path)]  # noqa: PTH113, PTH116, PTH207
    if not found:
        _check_folder(pattern)
    return [StoredFile(path, status.st_size, status.st_mtime_ns) for path, status in found]


def _check_folder(pattern: str) -> None:
    """Check that the pattern's folder may be listed, since one that may not seems empty to glob."""
    folder = Path(os.path.dirname(_GLOB.split(pattern, maxsplit=1)[0]))  # noqa: PTH120  ("a/" is in "a")
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
        raise FileError(f"{file.name} was deleted after it was listed", hint=_QUIET) from error
    except OSError as error:
        raise FileError(f"{file.name} cannot be read: {error.strerror}", hint="check its disk") from error
    if (status.st_size, status.st_mtime_ns) != (file.size_bytes, file.generation):
        raise FileError(f"{file.name} was replaced or written to after it was listed", hint=_QUIET)


def _denied(path: str) -> FileError:
    return FileError(
        f"{path}: permission denied",
        hint=f"let user {os.geteuid()} read it (chmod, chown), or run as a user who may",
    )


def _list_objects(pattern: str) -> list[StoredFile]:
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    bucket, _, path = pattern.removeprefix(GS).partition("/")
    first = _GLOB.search(path)
    prefix = path[: first.start()] if first else path
    try:
        blobs = list(_client().list_blobs(bucket, prefix=prefix, timeout=_TIMEOUT_S, retry=_retry()))
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        raise _refused(pattern, error) from error
    return [
        StoredFile(f"{GS}{bucket}/{blob.name}", blob.size or 0, blob.generation or 0, blob.crc32c or "")
        for blob in blobs
        if _matches(blob.name, path) and not blob.name.endswith("/")
    ]


def bucket_location(bucket: str) -> str:
    """Return a bucket's location as Cloud Storage names it: US-CENTRAL1, EU, NAM4.

    Raises:
        FileError: there is no such bucket, or the request failed.
    """
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    try:
        found = _client().get_bucket(bucket, timeout=_TIMEOUT_S, retry=_retry())
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        raise _refused(f"{GS}{bucket}", error) from error
    return str(found.location or "")


def _matches(name: str, pattern: str) -> bool:
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def _download(file: StoredFile, path: Path) -> None:
    from google.api_core.exceptions import GoogleAPIError, NotFound
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage.exceptions import DataCorruption

    bucket, _, name = file.name.removeprefix(GS).partition("/")
    blob = _client().bucket(bucket).blob(name, generation=file.generation)
    try:
        blob.download_to_filename(str(path), checksum="crc32c", timeout=_TIMEOUT_S, retry=_retry())
    except NotFound as error:
        raise FileError(
            f"{file.name} was deleted or replaced after it was listed (generation {file.generation})",
            hint=_QUIET,
        ) from error
    except DataCorruption as error:
        raise FileError(
            f"{file.name} was corrupted on the way: its checksum differs", hint="run again"
        ) from error
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        raise _refused(file.name, error) from error
    if (size := path.stat().st_size) != file.size_bytes:
        raise FileError(f"{file.name} has {file.size_bytes} bytes, but {size} arrived", hint="run again")


def _client() -> "Client":
    return _client_of(os.getpid())


@cache
def _client_of(pid: int) -> "Client":  # noqa: ARG001  (processes cannot share a client's connections)
    # Imported on use, because most sources are on disk.
    from google.auth.exceptions import DefaultCredentialsError
    from google.cloud import storage

    try:
        return storage.Client(project=os.environ.get("GOOGLE_CLOUD_PROJECT", "slipway"))
    except DefaultCredentialsError:
        return storage.Client.create_anonymous_client()


def _retry() -> Any:
    from google.cloud.storage.retry import DEFAULT_RETRY

    return DEFAULT_RETRY.with_timeout(_RETRY_S)


def _refused(name: str, error: Exception) -> FileError:
    from google.api_core.exceptions import Forbidden, NotFound, Unauthorized

    if isinstance(error, NotFound):
        bucket = name.removeprefix(GS).partition("/")[0]
        return FileError(f"{name}: there is no bucket {bucket!r}", hint="check data.source")
    if isinstance(error, Forbidden | Unauthorized):
        return FileError(
            f"{name}: permission denied",
            hint="gcloud auth application-default login; the account needs storage.objects.list and .get",
        )
    return FileError(f"{name} cannot be read: {type(error).__name__}: {str(error)[:300]}")
