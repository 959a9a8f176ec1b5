"""A folder in an object store, as those who publish and read versions need it.

Reads are verified, and every write has a precondition. If the response to a successful write is lost, its
retry fails because the object exists. Each object therefore carries a token of its writer: with our token and
our content, the write has succeeded.
"""

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from slipway.components.errors import ComponentError
from slipway.components.pusher.manifest import opened
from slipway.components.store_address import AZ, GS, S3, bucket_and_path, is_in_store
from slipway.components.time_limit import LateError, within

FIRST_ANSWER_S = 12.0
"""Time limit for the first response of a store, including the search for credentials."""
ATTEMPTS = 4
"""How often a write or a read is tried whose outcome is not known, or that arrived damaged."""

PROCESS = "slipway-process"
"""The object label that names the owning process, see `slipway.components.pusher.claim_owner`."""
WRITER = "slipway-writer"
"""The object label with the token of its writer."""
CRC32C = "slipway-crc32c"
"""The object label with the checksum of its content, base64 as Cloud Storage writes it."""
EMPTY_CRC32C = "AAAAAA=="
"""The checksum of an empty object, which only marks something."""

_CHUNK_BYTES = 2**20
_Found = TypeVar("_Found")


class TakenError(ComponentError):
    """Another publisher has written the object, or has removed the source of a copy."""


@dataclass(frozen=True)
class Stored:
    """The store's description of an object.

    Attributes:
        name: path below the folder.
        revision: the store's mark for this write of the object: Cloud Storage's generation, or the ETag.
        written: time of the write, by the store's clock.
        labels: what its writer noted, and under `CRC32C` the checksum, which Cloud Storage computes itself.
            S3 and Azure are asked for them on first use.
    """

    name: str
    size_bytes: int
    revision: str
    written: datetime
    labels: Mapping[str, str]

    @property
    def crc32c(self) -> str:
        """Checksum of its content; empty if somebody else wrote the object to S3 or Azure."""
        return self.labels.get(CRC32C, "")


class StoredFolder(ABC):
    """A folder of a bucket.

    Args:
        address: gs://BUCKET/FOLDER, s3://BUCKET/FOLDER or az://CONTAINER/FOLDER.
        writer: a token that marks what this publisher writes.

    Raises:
        ComponentError: the address names no bucket and folder.
    """

    log_in_hint = ""
    """How to look whether this machine has credentials."""
    copies_in_two_writes = False
    """Whether the source of a copy may be gone by the time that the copy is created, see `copy`."""

    def __init__(self, address: str, *, writer: str = "") -> None:
        bucket, path = bucket_and_path(address)
        if not is_in_store(address) or not bucket or not path.strip("/"):
            raise ComponentError(
                f"{address} must be {GS}BUCKET/FOLDER, {S3}BUCKET/FOLDER or {AZ}CONTAINER/FOLDER.",
                hint="correct push.destination in the workload file",
            )
        self.address = address.rstrip("/")
        self._bucket_name = bucket
        self._prefix = f"{path.strip('/')}/"
        self._writer = writer

    @abstractmethod
    def close(self) -> None:
        """Close the connections; for `contextlib.closing`."""

    @abstractmethod
    def list(self, below: str = "") -> dict[str, Stored]:
        """Return the objects of a folder and its subfolders by name, except placeholders of folders.

        Args:
            below: a path below this folder that ends with '/'; empty: this folder.

        Raises:
            ComponentError: the bucket does not exist, denies access or does not respond.
        """

    @abstractmethod
    def find(self, name: str) -> Stored | None:
        """Return an object as it is now; None if it does not exist."""

    @abstractmethod
    def read(self, stored: Stored) -> bytes:
        """Return the content of an object, verified against its checksum.

        Raises:
            ComponentError: the object was replaced or deleted, or arrives damaged.
        """

    @abstractmethod
    def fetch(self, stored: Stored, target: Path) -> None:
        """Download an object to a file of this machine; raises the errors of `read`."""

    @abstractmethod
    def create(
        self,
        name: str,
        content: Path | bytes,
        *,
        crc32c: str,
        labels: Mapping[str, str] | None = None,
        over: Stored | None = None,
    ) -> None:
        """Write an object that does not exist yet, or replace one.

        Args:
            name: path below the folder.
            crc32c: checksum of the content, see `crc32c_of`.
            labels: stored with the object, see `Stored`.
            over: the object to replace; None: there must be none.

        Raises:
            TakenError: another publisher's object is there.
            ComponentError: the object cannot be written.
        """

    @abstractmethod
    def copy(self, source: Stored, name: str) -> None:
        """Copy an object inside the store to a name that does not exist yet, if the source is unchanged.

        Raises:
            TakenError: the source is gone, or another publisher's object is there.
            ComponentError: the object cannot be written.
        """

    @abstractmethod
    def is_being_copied(self, source: Stored) -> bool:
        """Return True if a copy of the object has begun that may still end at any time."""

    @abstractmethod
    def delete(self, stored: Stored) -> None:
        """Delete this revision of an object; ignore an object that is gone or was replaced."""

    def is_own(self, stored: Stored | None, crc32c: str) -> bool:
        """Return True if this publisher wrote the object, with the content of this checksum."""
        return stored is not None and (stored.labels.get(WRITER), stored.crc32c) == (self._writer, crc32c)

    def _written(
        self, name: str, crc32c: str, write: Callable[[], object], over: Stored | None = None
    ) -> None:
        """Write until the object exists or cannot be written; after an error, look whether it exists."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                write()
            except self._failures() as error:
                there = self.find(name)
                if self.is_own(there, crc32c):
                    return
                is_unchanged = there is None or (over is not None and there.revision == over.revision)
                if not is_unchanged or self._is_precondition(error):
                    raise TakenError(
                        f"{self.address}/{name} was written by another publisher.", hint="push again"
                    ) from error
                if attempt == ATTEMPTS or not self._is_passing(error):
                    raise
            else:
                return

    def _soon(self, ask: Callable[[], _Found], limit_s: float) -> _Found:
        """Return the response, if it comes in time: the search for credentials can hang without a network."""
        try:
            return within(limit_s, ask)
        except LateError:
            raise ComponentError(
                f"{self.address} did not answer within {limit_s:.0f} s.",
                hint=f"check the network, and: {self.log_in_hint}",
            ) from None

    @abstractmethod
    def _failures(self) -> tuple[type[Exception], ...]:
        """Return the exceptions that the store's requests raise."""

    @abstractmethod
    def _is_precondition(self, error: Exception) -> bool:
        """Return True if the store refused a write because of its precondition."""

    @abstractmethod
    def _is_passing(self, error: Exception) -> bool:
        """Return True if the same request may succeed a moment later."""


def folder_at(address: str, *, writer: str = "") -> StoredFolder:
    """Return a folder in an object store; see `StoredFolder`.

    Raises:
        ComponentError: the address names no bucket and folder, the store's library is not installed, or there
            are no credentials.
    """
    # Imported on use, because most versions are on disk.
    if address.startswith((S3, AZ)):
        from slipway.components.pusher.s3_and_azure_folder import S3AndAzureFolder

        return S3AndAzureFolder(address, writer=writer)
    from slipway.components.pusher.google_folder import Folder

    return Folder(address, writer=writer)


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
