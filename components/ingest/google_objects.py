"""Lists and downloads the objects of Cloud Storage, gs://.

They are downloaded whole, at the generation that was listed, and verified by checksum, because the client
does not verify partial reads.
"""

import gzip
import os
import shlex
import shutil
import zlib
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.components.errors import ComponentError
from slipway.components.google_credentials import check_proxy
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.storage import GLOB, QUIET, StoredFile, matches, size_bytes
from slipway.components.store_address import GS
from slipway.components.store_waits import told_wait

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Client

_TIMEOUT_S = 60.0  # per request; the client retries transient failures
_RETRY_S = 300.0
_CHUNK_BYTES = 1 << 20


def list_objects(pattern: str) -> list[StoredFile]:
    """Return the objects that match a pattern; see `slipway.components.ingest.storage.ObjectStore`."""
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    bucket, _, path = pattern.removeprefix(GS).partition("/")
    first = GLOB.search(path)
    prefix = path[: first.start()] if first else path
    blobs: list[Blob] = []
    try:
        with told_wait(pattern, limit_s=_RETRY_S, arrived=lambda: len(blobs)):
            blobs.extend(_client().list_blobs(bucket, prefix=prefix, timeout=_TIMEOUT_S, retry=_retry()))
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        raise _refused(pattern, error) from error
    return [
        StoredFile(
            f"{GS}{bucket}/{blob.name}",
            blob.size or 0,
            blob.generation or 0,
            blob.crc32c or "",
            is_packed=blob.content_encoding == "gzip",
        )
        for blob in blobs
        if matches(blob.name, path) and not blob.name.endswith("/")
    ]


def bucket_location(bucket: str) -> str:
    """Return a bucket's location as Cloud Storage names it: US-CENTRAL1, EU, NAM4.

    Raises:
        FileError: there is no such bucket, or the request failed.
    """
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    try:
        with told_wait(f"{GS}{bucket}", limit_s=_RETRY_S):
            found = _client().get_bucket(bucket, timeout=_TIMEOUT_S, retry=_retry())
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        raise _refused(f"{GS}{bucket}", error) from error
    return str(found.location or "")


def download(file: StoredFile, path: Path) -> None:
    """Write an object to a file; see `slipway.components.ingest.storage.ObjectStore`."""
    from google.api_core.exceptions import GoogleAPIError, NotFound
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage.exceptions import DataCorruption

    bucket, _, name = file.name.removeprefix(GS).partition("/")
    blob = _client().bucket(bucket).blob(name, generation=file.generation)
    try:
        with told_wait(file.name, limit_s=_RETRY_S, arrived=partial(size_bytes, path)):
            blob.download_to_filename(
                str(path), raw_download=file.is_packed, checksum="crc32c", timeout=_TIMEOUT_S, retry=_retry()
            )
    except NotFound as error:
        raise FileError(
            f"{file.name} was deleted or replaced after it was listed (generation {file.generation})",
            hint=QUIET,
        ) from error
    except DataCorruption as error:
        raise FileError(
            f"{file.name} was corrupted on the way: its checksum differs", hint="run again"
        ) from error
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        raise _refused(file.name, error) from error
    if (size := path.stat().st_size) != file.size_bytes:
        raise FileError(f"{file.name} has {file.size_bytes} bytes, but {size} arrived", hint="run again")
    if file.is_packed and path.suffix.lower() != ".gz":
        _unpack(path, file)


def _unpack(path: Path, file: StoredFile) -> None:
    """Replace a file by what is in it: what other programs get from the store."""
    unpacked = path.with_name("unpacked")
    try:
        with gzip.open(path) as source, unpacked.open("wb") as target:
            shutil.copyfileobj(source, target, _CHUNK_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(
            f"{file.name} is not compressed with gzip, as its Content-Encoding says: {error}",
            hint=f"gcloud storage objects update --clear-content-encoding {shlex.quote(file.name)}",
        ) from error
    except OSError as error:
        raise FileError(f"{unpacked} cannot be written: {error}", hint="check its disk") from error
    unpacked.replace(path)


def _client() -> "Client":
    return _client_of(os.getpid())


@cache
def _client_of(pid: int) -> "Client":  # noqa: ARG001  (processes cannot share a client's connections)
    from google.auth.exceptions import DefaultCredentialsError
    from google.cloud import storage

    try:
        check_proxy()
    except ComponentError as error:
        raise FileError(error.message, hint=error.hint) from None
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
