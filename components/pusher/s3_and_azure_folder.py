"""One folder of S3 or Azure: verified reads and exactly-once writes, by If-None-Match and If-Match.

S3's ETag is a digest of the content: an object is only known to be unchanged if every write of it differs.
So what only marks something, and is empty elsewhere, holds its writer's token here.

Their library copies on no condition. So a copy is two writes: the source is written anew with `_COPYING` at
its end, on condition that it is unchanged, and who saw it before can no longer replace it; then the copy is
created.
"""

import base64
import builtins
import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import google_crc32c

from slipway.components import s3_and_azure_store
from slipway.components.errors import ComponentError
from slipway.components.pusher.manifest import opened
from slipway.components.pusher.stored_folder import (
    ATTEMPTS,
    CRC32C,
    FIRST_ANSWER_S,
    WRITER,
    Stored,
    StoredFolder,
    TakenError,
    crc32c_of,
)
from slipway.components.s3_and_azure_store import open_store
from slipway.components.store_address import AZ
from slipway.components.store_waits import told_wait

if TYPE_CHECKING:
    from obstore import UpdateVersion

_COPYING = "slipway-copying"
_MARK = _COPYING.encode()
_CHUNK_BYTES = 8 * 2**20
_NO_ETAG = '"00000000000000000000000000000000"'  # of no content
_Mode: TypeAlias = "Literal['create'] | UpdateVersion"


class _DamagedError(Exception):
    """What arrived does not have the checksum that its writer noted."""


class _Labels(Mapping[str, str]):
    """The labels of a listed object, for which the store is asked when they are first looked at.

    Args:
        ask: returns the labels; none if the object is gone or was replaced.
    """

    def __init__(self, ask: Callable[[], Mapping[str, str]]) -> None:
        self._ask = ask
        self._found: Mapping[str, str] | None = None

    def _all(self) -> Mapping[str, str]:
        if self._found is None:
            self._found = self._ask()
        return self._found

    def __getitem__(self, key: str) -> str:
        return self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class S3AndAzureFolder(StoredFolder):
    """A folder of a bucket of S3, or of a container of Azure.

    Raises:
        ComponentError: the library is not installed, or the environment does not name the account.
    """

    log_in_hint = "the credentials in the environment, or of the machine"
    copies_in_two_writes = True

    def __init__(self, address: str, *, writer: str = "") -> None:
        super().__init__(address, writer=writer)
        # Until it has answered once, the store gets less time.
        self._store: Any = open_store(address, retry_s=FIRST_ANSWER_S * 0.8, stalled_s=FIRST_ANSWER_S)
        self._for_large: Any = open_store(address, stalled_s=None)
        self._answered = False
        self._heeds_conditions = False

    def close(self) -> None:
        """See `StoredFolder.close`: the library closes connections by itself."""

    def list(self, below: str = "") -> dict[str, Stored]:
        """See `StoredFolder.list`."""
        import obstore

        def ask() -> builtins.list[Any]:
            pages = obstore.list(self._store, prefix=self._prefix + below)
            return [meta for page in pages for meta in page]

        with self._named():
            found = ask() if self._answered else self._soon(ask, FIRST_ANSWER_S)
        if not self._answered:
            self._store, self._answered = open_store(self.address), True
        # Some programs create empty objects for folders, which cannot be files here.
        folders = {str(parent) for meta in found for parent in Path(meta["path"]).parents}
        folders |= {(self._prefix + below).rstrip("/")}
        files = (meta for meta in found if meta["size"] or meta["path"] not in folders)
        return {stored.name: stored for stored in map(self._stored, files)}

    def find(self, name: str) -> Stored | None:
        """See `StoredFolder.find`."""
        import obstore

        with self._named():
            try:
                return self._stored(obstore.head(self._store, self._prefix + name))
            except FileNotFoundError:
                return None

    def read(self, stored: Stored) -> bytes:
        """See `StoredFolder.read`."""
        parts: list[bytes] = []
        self._whole(stored, parts.append, parts.clear)
        return b"".join(parts)

    def fetch(self, stored: Stored, target: Path) -> None:
        """See `StoredFolder.fetch`."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            self._whole(stored, file.write, partial(_empty, file))

    def create(
        self,
        name: str,
        content: Path | bytes,
        *,
        crc32c: str,
        labels: Mapping[str, str] | None = None,
        over: Stored | None = None,
    ) -> None:
        """See `StoredFolder.create`. A file is held in memory, and S3 takes at most 5 GiB."""
        noted = {**(labels or {}), WRITER: self._writer, CRC32C: crc32c}
        with self._named():
            self._written(name, crc32c, lambda: self._put(name, content, noted, _mode(over)), over)
            if over is None and not self._heeds_conditions:
                self._check_conditions(name, content, noted)

    def copy(self, source: Stored, name: str) -> None:
        """See `StoredFolder.copy`; also ends a copy that another process has begun."""
        is_begun = self.is_being_copied(source)
        content = self.read(source).removesuffix(_MARK if is_begun else b"")
        crc32c, marked = crc32c_of(content), content + _MARK
        # The copy is the original publisher's, who may be about to end it, too.
        noted = {WRITER: source.labels.get(WRITER, ""), CRC32C: crc32c}
        begun = {**noted, CRC32C: crc32c_of(marked), _COPYING: "yes"}
        with self._named():
            if not is_begun:
                self._written(
                    source.name,
                    begun[CRC32C],
                    lambda: self._put(source.name, marked, begun, _mode(source)),
                    source,
                )
            self._written(name, crc32c, lambda: self._put(name, content, noted, "create"))

    def is_being_copied(self, source: Stored) -> bool:
        """See `StoredFolder.is_being_copied`."""
        return _COPYING in source.labels

    def delete(self, stored: Stored) -> None:
        """See `StoredFolder.delete`. The library has no condition for it, so the revision is compared before.

        The source of a copy that has begun counts as unchanged.
        """
        import obstore

        there = self.find(stored.name)
        if there and (there.revision == stored.revision or self.is_being_copied(there)):
            with self._named(), contextlib.suppress(FileNotFoundError):
                obstore.delete(self._store, self._prefix + stored.name)

    def _put(self, name: str, content: Path | bytes, labels: Mapping[str, str], mode: _Mode) -> None:
        import obstore

        body: contextlib.AbstractContextManager[Any]
        if isinstance(content, bytes):
            body, size = contextlib.nullcontext(content or self._writer.encode()), len(content)
        else:
            try:
                body, size = opened(content), content.stat().st_size
            except OSError as error:  # a FileNotFoundError would be taken for the store's
                raise ComponentError(f"{content} cannot be read: {error}.", hint="check its disk") from error
        # Azure takes no '-' in these names, and servers in front of S3 drop names with '_'.
        dash = "_" if self.address.startswith(AZ) else "-"
        attributes = {key.replace("-", dash): value for key, value in labels.items()}
        attributes["Content-Type"] = "application/octet-stream"
        store = self._store if size <= _CHUNK_BYTES else self._for_large
        with body as sent:
            try:
                obstore.put(store, self._prefix + name, sent, attributes=attributes, mode=mode)
            except self._failures() as error:
                if s3_and_azure_store.is_not_implemented(error):
                    raise _no_conditions(self.address) from error
                raise

    def _check_conditions(self, name: str, content: Path | bytes, labels: Mapping[str, str]) -> None:
        """Refuse a store that ignores a condition: publishers would overwrite each other's files."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        modes: list[_Mode] = ["create", {"e_tag": _NO_ETAG}]
        for mode in modes:
            try:
                self._put(name, content, labels, mode)
            except (AlreadyExistsError, PreconditionError):
                continue
            obstore.delete(self._store, self._prefix + name)
            raise _no_conditions(self.address)
        self._heeds_conditions = True

    def _whole(self, stored: Stored, take: Callable[[bytes], object], restart: Callable[[], None]) -> None:
        """Hand on the content of an object in parts, from the start again if it arrives damaged."""
        with self._named():
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    self._streamed(stored, take)
                except _DamagedError as error:
                    if attempt == ATTEMPTS:
                        raise ComponentError(
                            f"{self.address}/{stored.name} was corrupted on the way.", hint="try again"
                        ) from error
                    restart()
                else:
                    return

    def _streamed(self, stored: Stored, take: Callable[[bytes], object]) -> None:
        import obstore
        from obstore.exceptions import PreconditionError

        checksum, size = google_crc32c.Checksum(), 0
        try:
            found = obstore.get(
                self._store, self._prefix + stored.name, options={"if_match": stored.revision}
            )
        except (FileNotFoundError, PreconditionError) as error:
            raise TakenError(
                f"{self.address}/{stored.name} was replaced or deleted after it was listed.", hint="try again"
            ) from error
        for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
            part = bytes(chunk)
            checksum.update(part)
            size += len(part)
            if size > stored.size_bytes:  # it may never end
                raise _DamagedError
            take(part)
        noted = _named_labels(found.attributes).get(CRC32C)
        if size != stored.size_bytes or (noted and noted != _base64(checksum.digest())):
            raise _DamagedError

    def _stored(self, meta: Any) -> Stored:
        revision = f'"{str(meta["e_tag"]).strip(chr(34))}"'  # Azure's listings leave the quotes out
        written = meta["last_modified"]
        ask = partial(self._labels, meta["path"], revision)
        return Stored(meta["path"].removeprefix(self._prefix), meta["size"], revision, written, _Labels(ask))

    def _labels(self, path: str, revision: str) -> Mapping[str, str]:
        import obstore
        from obstore.exceptions import PreconditionError

        with self._named():
            try:
                found = obstore.get(self._store, path, options={"if_match": revision, "head": True})
            except (FileNotFoundError, PreconditionError):
                return {}
        return _named_labels(found.attributes)

    def _failures(self) -> tuple[type[Exception], ...]:
        return s3_and_azure_store.failures()

    def _is_precondition(self, error: Exception) -> bool:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        is_gone = isinstance(error, FileNotFoundError) and not s3_and_azure_store.is_missing_bucket(error)
        return is_gone or isinstance(error, AlreadyExistsError | PreconditionError)

    def _is_passing(self, error: Exception) -> bool:
        return s3_and_azure_store.is_passing(error)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Convert the store's errors to ours, with the address, the cause, the remedy."""
        limit_s = s3_and_azure_store.RETRY_S if self._answered else FIRST_ANSWER_S
        try:
            with told_wait(self.address, limit_s=limit_s):
                yield
        except self._failures() as error:
            raise s3_and_azure_store.refusal(self.address, error) from error


def _mode(over: Stored | None) -> _Mode:
    return {"e_tag": over.revision} if over else "create"


def _no_conditions(address: str) -> ComponentError:
    return ComponentError(
        f"{address}: this store has no conditional writes (If-None-Match and If-Match), so two publishers "
        "could overwrite each other's files; nothing is published.",
        hint="push to a store that has them, such as Amazon's S3 or Azure, or to a directory",
    )


def _named_labels(attributes: Mapping[Any, str]) -> Mapping[str, str]:
    return {str(key).replace("_", "-"): value for key, value in attributes.items()}


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def _empty(file: Any) -> None:
    file.seek(0)
    file.truncate()
