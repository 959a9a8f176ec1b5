"""Reads and writes the objects below an address on S3 or Azure, as plain files; the last writer wins.

Where others may write at the same time, see `slipway.components.pusher.stored_folder`. The library, obstore,
is imported on use and may not be installed.
"""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slipway.components import s3_and_azure_store
from slipway.components.store_address import bucket_and_path
from slipway.components.store_waits import told_wait

if TYPE_CHECKING:
    from obstore import ObjectMeta

_CHUNK_BYTES = 8 * 2**20


class StoredObjects:
    """The objects below an address. An object is written whole or not at all.

    Every method raises a ComponentError, in words, if the store refuses or does not answer.

    Args:
        address: s3://BUCKET/..., minio://BUCKET/... or az://CONTAINER/...

    Raises:
        ComponentError: see `s3_and_azure_store.open_store`.
    """

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        _, path = bucket_and_path(self._address)
        self._prefix = f"{path}/" if path else ""
        self._store: Any = s3_and_azure_store.open_store(self._address)

    def names(self) -> list[str]:
        """Return the names of all objects, as paths below the address, sorted."""
        return sorted(each["path"].removeprefix(self._prefix) for each in self._listed())

    def children(self) -> list[str]:
        """Return the names of the objects and folders directly below the address, sorted."""
        return sorted({name.partition("/")[0] for name in self.names()})

    def exist(self) -> bool:
        """Return True if there is any object."""
        return any(True for _ in self._listed())

    def read(self, name: str) -> bytes:
        """Return the content of an object.

        Raises:
            FileNotFoundError: there is none of that name.
        """
        import obstore

        with self._in_words():
            return bytes(obstore.get(self._store, self._prefix + name).bytes())

    def write(self, name: str, content: bytes | Path) -> None:
        """Write an object, in place of one that is there.

        Args:
            content: bytes, or a file of this machine.
        """
        import obstore

        with self._in_words():
            obstore.put(self._store, self._prefix + name, content)

    def remove(self, name: str) -> None:
        """Remove an object if it exists."""
        import obstore

        with contextlib.suppress(FileNotFoundError), self._in_words():
            obstore.delete(self._store, self._prefix + name)

    def fetch(self, folder: Path) -> None:
        """Copy all objects to a folder of this machine; do nothing if there are none."""
        import obstore

        for name in self.names():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with self._in_words():
                found = obstore.get(self._store, self._prefix + name)
                with target.open("wb") as file:
                    for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
                        file.write(chunk)

    def put(self, folder: Path) -> None:
        """Write an object for each file below a folder of this machine; a store has no empty folders."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.write(path.relative_to(folder).as_posix(), path)

    def _listed(self) -> Iterator["ObjectMeta"]:
        import obstore

        with self._in_words():
            for page in obstore.list(self._store, prefix=self._prefix or None):
                yield from page

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Raise the store's errors as ComponentErrors that name the address; FileNotFoundError passes."""
        try:
            with told_wait(self._address, limit_s=s3_and_azure_store.RETRY_S):
                yield
        except FileNotFoundError as error:
            if s3_and_azure_store.is_missing_bucket(error):
                raise s3_and_azure_store.refusal(self._address, error) from error
            # In our own words: the store's may hold a signed address.
            raise FileNotFoundError(f"{self._address}: {s3_and_azure_store.words_of(error)}") from error
        except s3_and_azure_store.failures() as error:
            raise s3_and_azure_store.refusal(self._address, error) from error
