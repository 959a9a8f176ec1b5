"""One folder of Cloud Storage: verified reads and exactly-once writes, whatever the network does.

Every write has a precondition, so it may be retried.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from slipway.components.errors import ComponentError
from slipway.components.google_credentials import LOG_IN, check_proxy, no_credentials
from slipway.components.google_retries import odd_answer, odd_answers_as_errors
from slipway.components.pusher.manifest import opened
from slipway.components.pusher.stored_folder import (
    ATTEMPTS,
    CRC32C,
    FIRST_ANSWER_S,
    WRITER,
    Stored,
    StoredFolder,
    TakenError,
)
from slipway.components.store_address import GS
from slipway.components.store_waits import told_wait

if TYPE_CHECKING:
    from google.cloud.storage import Blob

RETRY_S = 300.0
"""How long transient failures of one request are retried."""
FIRST_DELAY_S = 0.3
"""The longest wait before the first retry; it doubles with each retry."""

_TIMEOUT_S = 60.0  # per request
_Found = TypeVar("_Found")


class Folder(StoredFolder):
    """A folder of a bucket of Cloud Storage.

    Raises:
        ComponentError: there are no credentials, or the environment's proxy has no address.
    """

    log_in_hint = "gcloud auth application-default print-access-token"

    def __init__(self, address: str, *, writer: str = "") -> None:
        super().__init__(address, writer=writer)
        self._bucket = self._soon(lambda: _client().bucket(self._bucket_name), FIRST_ANSWER_S)
        self._answered = False

    def close(self) -> None:
        """See `StoredFolder.close`."""
        self._bucket.client.close()

    def list(self, below: str = "") -> dict[str, Stored]:
        """See `StoredFolder.list`."""
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
            found = ask() if self._answered else self._soon(ask, FIRST_ANSWER_S)
        self._answered = True
        return found

    def find(self, name: str) -> Stored | None:
        """See `StoredFolder.find`."""
        with self._named():
            blob = self._bucket.get_blob(self._prefix + name, timeout=_TIMEOUT_S, retry=self._retry())
        return self._stored(blob) if blob else None

    def read(self, stored: Stored) -> bytes:
        """See `StoredFolder.read`."""
        blob = self._blob(stored.name, int(stored.revision))
        with self._named():
            content: bytes = self._whole(
                lambda: blob.download_as_bytes(checksum="crc32c", timeout=_TIMEOUT_S, retry=self._retry())
            )
        return content

    def fetch(self, stored: Stored, target: Path) -> None:
        """See `StoredFolder.fetch`."""
        blob = self._blob(stored.name, int(stored.revision))
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
        labels: Mapping[str, str] | None = None,
        over: Stored | None = None,
    ) -> None:
        """See `StoredFolder.create`."""

        def write() -> None:
            blob = self._blob(name)
            blob.metadata = {**(labels or {}), WRITER: self._writer}
            options = {
                "if_generation_match": int(over.revision) if over else 0,
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

        with self._named():
            self._written(name, crc32c, write, over)

    def copy(self, source: Stored, name: str) -> None:
        """See `StoredFolder.copy`."""
        from google.api_core.exceptions import NotFound

        def write() -> None:
            blob, origin = self._blob(name), self._blob(source.name, int(source.revision))
            blob.metadata = {WRITER: self._writer}
            blob.content_type = "application/octet-stream"
            token: str | None = ""
            while token is not None:
                token, _, _ = blob.rewrite(
                    origin,
                    token=token or None,
                    if_generation_match=0,
                    if_source_generation_match=int(source.revision),
                    timeout=_TIMEOUT_S,
                    retry=self._retry(),
                )

        with self._named():
            try:
                self._written(name, source.crc32c, write)
            except NotFound as error:
                if _is_missing_bucket(error):
                    raise
                raise TakenError(
                    f"{self.address}/{source.name} was replaced or deleted by another publisher.",
                    hint="push again",
                ) from error

    def delete(self, stored: Stored) -> None:
        """See `StoredFolder.delete`."""
        from google.api_core.exceptions import NotFound, PreconditionFailed

        with self._named(), contextlib.suppress(NotFound, PreconditionFailed):
            self._blob(stored.name).delete(
                if_generation_match=int(stored.revision), timeout=_TIMEOUT_S, retry=self._retry()
            )

    def is_being_copied(self, source: Stored) -> bool:  # noqa: ARG002
        """See `StoredFolder.is_being_copied`."""
        return False  # the store copies in one request, on condition

    def _failures(self) -> tuple[type[Exception], ...]:
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

    def _is_precondition(self, error: Exception) -> bool:
        from google.api_core.exceptions import PreconditionFailed

        return isinstance(error, PreconditionFailed)

    def _is_passing(self, error: Exception) -> bool:
        from google.api_core.exceptions import ClientError, TooManyRequests
        from google.auth.exceptions import GoogleAuthError

        return isinstance(error, TooManyRequests) or not isinstance(error, ClientError | GoogleAuthError)

    def _whole(self, read: Callable[[], _Found]) -> _Found:
        from google.cloud.storage.exceptions import DataCorruption

        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(DataCorruption):
                return read()
        return read()

    def _blob(self, name: str, generation: int | None = None) -> "Blob":
        return self._bucket.blob(self._prefix + name, generation=generation)

    def _stored(self, blob: "Blob") -> Stored:
        return Stored(
            name=blob.name.removeprefix(self._prefix),
            size_bytes=blob.size or 0,
            revision=str(blob.generation or 0),
            written=blob.updated,
            labels={**(blob.metadata or {}), CRC32C: blob.crc32c or ""},
        )

    @property
    def _limit_s(self) -> float:
        """How long a request is repeated; less until the store has answered once."""
        return RETRY_S if getattr(self, "_answered", False) else FIRST_ANSWER_S * 0.8

    def _retry(self) -> Any:
        from google.cloud.storage.retry import DEFAULT_RETRY

        is_passing = DEFAULT_RETRY._predicate  # of an answer that the client cannot read, by its status
        retry = DEFAULT_RETRY.with_predicate(lambda error: is_passing(odd_answer(error) or error))
        return retry.with_timeout(self._limit_s).with_delay(initial=FIRST_DELAY_S, maximum=20.0)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Convert the store's errors to ours, with the address, the cause, the remedy."""
        try:
            with told_wait(self.address, limit_s=self._limit_s), odd_answers_as_errors():
                yield
        except self._failures() as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> ComponentError:
        from google.api_core.exceptions import Forbidden, NotFound, Unauthorized
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.storage.exceptions import DataCorruption

        said = " ".join(str(error).split())[:300]
        if isinstance(error, GoogleAuthError):
            return ComponentError(f"{self.address}: the credentials do not work: {said}", hint=LOG_IN)
        if isinstance(error, Unauthorized | Forbidden):
            need = f"the account needs storage.objects.create, .delete, .get and .list in {self._bucket_name}"
            return ComponentError(f"{self.address}: permission denied: {said}", hint=f"{LOG_IN}; {need}")
        if isinstance(error, NotFound) and _is_missing_bucket(error):
            return ComponentError(
                f"{self.address}: there is no bucket {self._bucket_name!r}.",
                hint=f"gcloud storage buckets create {GS}{self._bucket_name}, or correct push.destination",
            )
        if isinstance(error, NotFound):
            return ComponentError(
                f"{self.address}: an object was replaced or deleted after it was listed: {said}",
                hint="try again",
            )
        if isinstance(error, DataCorruption):
            return ComponentError(f"{self.address}: an object was corrupted on the way.", hint="try again")
        return ComponentError(
            f"{self.address} cannot be used: {type(error).__name__}: {said}",
            hint="when it answers again, resume the run",
        )


def _is_missing_bucket(error: Exception) -> bool:
    """Return True if there is no such bucket; an error also tells the address, with any names."""
    return "bucket does not exist" in str(error)


def _client() -> Any:
    from google.auth.exceptions import DefaultCredentialsError
    from google.cloud import storage

    check_proxy()
    try:
        # The project only matters for creating or listing buckets.
        return storage.Client(project=os.environ.get("GOOGLE_CLOUD_PROJECT", "slipway"))
    except (DefaultCredentialsError, AttributeError, OSError, TypeError, ValueError) as error:
        # Not chained: it may repeat the variable, which may hold the key itself. google.auth does not check
        # that a file of credentials is readable and a JSON object.
        raise no_credentials("Cloud Storage", error) from None
