"""One folder of Cloud Storage: verified reads and exactly-once writes, whatever the network does.

Every write has a precondition, so it may be retried. If the response to a successful write is lost, the retry
fails because the object exists (412). Each object therefore carries a token of its writer: with our token and
our content, the write has succeeded.
"""

import base64
import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from slipway.components.errors import ComponentError
from slipway.components.pusher.manifest import opened
from slipway.components.pusher.versions import GS

if TYPE_CHECKING:
    from google.cloud.storage import Blob

FIRST_ANSWER_S = 12.0
"""Time limit for the first response of a bucket, including the search for credentials."""
RETRY_S = 300.0
"""How long transient failures of one request are retried."""
FIRST_DELAY_S = 0.3
"""The longest wait before the first retry; it doubles with each retry."""

PROCESS = "slipway-process"
"""The object label that names the owning process, see `slipway.components.pusher.claim_owner`."""
EMPTY_CRC32C = "AAAAAA=="
"""The checksum of an empty object, which only marks something."""

_TIMEOUT_S = 60.0  # per request
_ATTEMPTS = 4
_WRITER = "slipway-writer"
_CHUNK_BYTES = 2**20
_Found = TypeVar("_Found")


class TakenError(ComponentError):
    """Another publisher has written the object, or has removed the source of a copy."""


@dataclass(frozen=True)
class Stored:
    """The store's description of an object.

    Attributes:
        name: path below the folder.
        size_bytes: size of its content.
        crc32c: checksum of its content, base64 as Cloud Storage writes it.
        generation: Cloud Storage's number for this write of the object.
        written: time of the write, by the store's clock.
        labels: metadata from its writer.
    """

    name: str
    size_bytes: int
    crc32c: str
    generation: int
    written: datetime
    labels: dict[str, str]


class Folder:
    """A folder of a bucket.

    Args:
        address: gs://BUCKET/FOLDER.
        writer: a token that marks what this publisher writes.

    Raises:
        ComponentError: the address names no bucket and folder, or there are no credentials.
    """

    def __init__(self, address: str, *, writer: str = "") -> None:
        bucket, _, path = address.removeprefix(GS).partition("/")
        if not address.startswith(GS) or not bucket or not path.strip("/"):
            raise ComponentError(
                f"{address} must be {GS}BUCKET/FOLDER.", hint="correct push.destination in the workload file"
            )
        self.address = address.rstrip("/")
        self._prefix = f"{path.strip('/')}/"
        self._name = bucket
        self._writer = writer
        self._bucket = self._soon(lambda: _client().bucket(bucket))
        self._answered = False

    def close(self) -> None:
        """Close the connections; for `contextlib.closing`."""
        self._bucket.client.close()

    def list(self, below: str = "") -> dict[str, Stored]:
        """Return the objects whose name begins with `below`, by name, except placeholders of folders.

        Raises:
            ComponentError: the bucket does not exist, denies access or does not respond.
        """
        prefix = self._prefix + below

        def ask() -> dict[str, Stored]:
            blobs = self._bucket.client.list_blobs(
                self._bucket,
                prefix=prefix,
                fields="items(name,size,crc32c,generation,updated,metadata),nextPageToken",
                timeout=_TIMEOUT_S,
                retry=self._retry(),
            )
            # Objects named `NAME/`, which some programs create for folders, cannot be files here.
            files = (blob for blob in blobs if not blob.name.endswith("/"))
            return {stored.name: stored for stored in map(self._stored, files)}

        with self._named():
            found = ask() if self._answered else self._soon(ask)
        self._answered = True
        return found

    def find(self, name: str) -> Stored | None:
        """Return an object as it is now; None if it does not exist."""
        with self._named():
            blob = self._bucket.get_blob(self._prefix + name, timeout=_TIMEOUT_S, retry=self._retry())
        return self._stored(blob) if blob else None

    def read(self, stored: Stored) -> bytes:
        """Return the content of an object, verified against its checksum.

        Raises:
            ComponentError: the object was replaced or deleted, or arrives damaged.
        """
        blob = self._blob(stored.name, stored.generation)
        with self._named():
            content: bytes = self._whole(
                lambda: blob.download_as_bytes(checksum="crc32c", timeout=_TIMEOUT_S, retry=self._retry())
            )
        return content

    def fetch(self, stored: Stored, target: Path) -> None:
        """Download an object to a file of this machine; raises the errors of `read`."""
        blob = self._blob(stored.name, stored.generation)
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._named():
            self._whole(
                lambda: blob.download_to_filename(
                    str(target), checksum="crc32c", timeout=_TIMEOUT_S, retry=self._retry()
                )
            )

    def create(
        self,
        name: str,
        content: Path | bytes,
        *,
        crc32c: str,
        labels: dict[str, str] | None = None,
        over: Stored | None = None,
    ) -> None:
        """Write an object that does not exist yet, or replace one.

        Args:
            name: path below the folder.
            content: a file, or bytes.
            crc32c: checksum of the content, see `crc32c_of`.
            labels: stored with the object, see `Stored`.
            over: the object to replace; None: there must be none.

        Raises:
            TakenError: another publisher's object is there.
            ComponentError: the object cannot be written.
        """

        def write() -> None:
            blob = self._blob(name)
            blob.metadata = {**(labels or {}), _WRITER: self._writer}
            options = {
                "if_generation_match": over.generation if over else 0,
                "checksum": "crc32c",
                "timeout": _TIMEOUT_S,
                "retry": self._retry(),
                "content_type": "application/octet-stream",
            }
            if isinstance(content, bytes):
                blob.upload_from_string(content, **options)
            else:
                with opened(content) as file:
                    blob.upload_from_file(file, size=os.fstat(file.fileno()).st_size, **options)

        self._written(name, crc32c, write)

    def copy(self, source: Stored, name: str) -> None:
        """Copy an object inside the store to a name that does not exist yet, if the source is unchanged.

        Raises:
            TakenError: the source is gone, or another publisher's object is there.
            ComponentError: the object cannot be written.
        """

        def write() -> None:
            blob, origin = self._blob(name), self._blob(source.name, source.generation)
            blob.metadata = {_WRITER: self._writer}
            blob.content_type = "application/octet-stream"
            token: str | None = ""
            while token is not None:
                token, _, _ = blob.rewrite(
                    origin,
                    token=token or None,
                    if_generation_match=0,
                    if_source_generation_match=source.generation,
                    timeout=_TIMEOUT_S,
                    retry=self._retry(),
                )

        self._written(name, source.crc32c, write)

    def delete(self, stored: Stored) -> None:
        """Delete this generation of an object; ignore an object that is gone or was replaced."""
        from google.api_core.exceptions import NotFound, PreconditionFailed

        with self._named(), contextlib.suppress(NotFound, PreconditionFailed):
            self._blob(stored.name).delete(
                if_generation_match=stored.generation, timeout=_TIMEOUT_S, retry=self._retry()
            )

    def is_own(self, stored: Stored | None, crc32c: str) -> bool:
        """Return True if this publisher wrote the object, with the content of this checksum."""
        return stored is not None and (stored.labels.get(_WRITER), stored.crc32c) == (self._writer, crc32c)

    def _written(self, name: str, crc32c: str, write: Callable[[], None]) -> None:
        """Write until the object exists or cannot be written; after an error, look whether it exists."""
        from google.api_core.exceptions import NotFound, PreconditionFailed

        with self._named():
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    write()
                except _failures() as error:
                    there = self.find(name)
                    if self.is_own(there, crc32c):
                        return
                    if there is not None or isinstance(error, PreconditionFailed):
                        raise TakenError(
                            f"{self.address}/{name} was written by another publisher.", hint="push again"
                        ) from error
                    if attempt == _ATTEMPTS or isinstance(error, NotFound) or not _is_passing(error):
                        raise
                else:
                    return

    def _whole(self, read: Callable[[], _Found]) -> _Found:
        from google.cloud.storage.exceptions import DataCorruption

        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(DataCorruption):
                return read()
        return read()

    def _blob(self, name: str, generation: int | None = None) -> "Blob":
        return self._bucket.blob(self._prefix + name, generation=generation)

    def _stored(self, blob: "Blob") -> Stored:
        return Stored(
            name=blob.name.removeprefix(self._prefix),
            size_bytes=blob.size or 0,
            crc32c=blob.crc32c or "",
            generation=blob.generation or 0,
            written=blob.updated,
            labels=dict(blob.metadata or {}),
        )

    def _retry(self) -> Any:
        from google.cloud.storage.retry import DEFAULT_RETRY

        limit_s = RETRY_S if getattr(self, "_answered", False) else FIRST_ANSWER_S * 0.8
        return DEFAULT_RETRY.with_timeout(limit_s).with_delay(initial=FIRST_DELAY_S, maximum=20.0)

    def _soon(self, ask: Callable[[], _Found]) -> _Found:
        """Return the response, if it comes in time: the search for credentials can hang without a network."""
        answers: queue.SimpleQueue[tuple[_Found | None, BaseException | None]] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put((ask(), None))
            except BaseException as error:  # raised again below
                answers.put((None, error))

        threading.Thread(target=work, daemon=True).start()
        try:
            found, error = answers.get(timeout=FIRST_ANSWER_S)
        except queue.Empty:
            raise ComponentError(
                f"{self.address} did not answer within {FIRST_ANSWER_S:.0f} s.",
                hint="check the network, and: gcloud auth application-default print-access-token",
            ) from None
        if error is not None:
            raise error
        return found  # type: ignore[return-value]  # an answer, where there is no error

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Convert the store's errors to ours, with the address, the cause, the remedy."""
        try:
            yield
        except _failures() as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> ComponentError:
        from google.api_core.exceptions import Forbidden, NotFound, Unauthorized
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.storage.exceptions import DataCorruption

        said = " ".join(str(error).split())[:300]
        if isinstance(error, GoogleAuthError):
            return ComponentError(f"{self.address}: the credentials do not work: {said}", hint=_LOG_IN)
        if isinstance(error, Unauthorized | Forbidden):
            need = f"the account needs storage.objects.create, .delete, .get and .list in {self._name}"
            return ComponentError(f"{self.address}: permission denied: {said}", hint=f"{_LOG_IN}; {need}")
        if isinstance(error, NotFound) and "bucket" in said.lower():
            return ComponentError(
                f"{self.address}: there is no bucket {self._name!r}.",
                hint=f"gcloud storage buckets create {GS}{self._name}, or correct push.destination",
            )
        if isinstance(error, DataCorruption):
            return ComponentError(f"{self.address}: an object was corrupted on the way.", hint="try again")
        return ComponentError(
            f"{self.address} cannot be used: {type(error).__name__}: {said}",
            hint="when it answers again, resume the run",
        )


def crc32c_of(content: Path | bytes) -> str:
    """Return the CRC32C of a file or of bytes, base64 as Cloud Storage writes it."""
    import google_crc32c

    checksum = google_crc32c.Checksum()
    if isinstance(content, bytes):
        checksum.update(content)
    else:
        with opened(content) as file:
            while chunk := file.read(_CHUNK_BYTES):
                checksum.update(chunk)
    return base64.b64encode(checksum.digest()).decode()


_LOG_IN = "gcloud auth application-default login"


def _client() -> Any:
    from google.auth.exceptions import DefaultCredentialsError
    from google.cloud import storage

    try:
        # The project only matters for creating or listing buckets.
        return storage.Client(project=os.environ.get("GOOGLE_CLOUD_PROJECT", "slipway"))
    except DefaultCredentialsError as error:
        raise ComponentError("There are no credentials for Cloud Storage.", hint=_LOG_IN) from error


def _failures() -> tuple[type[Exception], ...]:
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    return (
        GoogleAPIError,
        GoogleAuthError,
        DataCorruption,
        InvalidResponse,
        RequestException,
        HTTPError,
        ConnectionError,
    )


def _is_passing(error: Exception) -> bool:
    """Return True if the same request may succeed a moment later."""
    from google.api_core.exceptions import ClientError, TooManyRequests
    from google.auth.exceptions import GoogleAuthError

    return isinstance(error, TooManyRequests) or not isinstance(error, ClientError | GoogleAuthError)
