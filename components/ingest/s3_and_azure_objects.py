"""Lists and downloads the objects of S3 and Azure Blob Storage, s3:// and az://.

They are downloaded whole, on condition that their ETag is the one that was listed.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.components import s3_and_azure_store
from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.storage import GLOB, QUIET, StoredFile, matches, size_bytes
from slipway.components.store_address import bucket_and_path
from slipway.components.store_waits import told_wait

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import AzureStore, S3Store

_CHUNK_BYTES = 8 * 2**20


def list_objects(pattern: str) -> list[StoredFile]:
    """Return the objects that match a pattern; see `slipway.components.ingest.storage.ObjectStore`."""
    _, path = bucket_and_path(pattern)
    top = pattern.removesuffix(path)
    with _named(pattern), told_wait(pattern, limit_s=s3_and_azure_store.RETRY_S):
        found = list(_candidates(_store(top), path))
    # Some programs create empty objects for folders.
    folders = {str(parent) for each in found for parent in Path(each["path"]).parents}
    found = [each for each in found if each["size"] or each["path"] not in folders]
    if any(each["e_tag"] is None for each in found):
        raise FileError(
            f"{pattern}: this store names no ETags, by which a file that changes meanwhile would be noticed",
            hint="copy the files to this machine, or to a store that does",
        )
    return [
        StoredFile(f"{top}{each['path']}", each["size"], checksum=str(each["e_tag"]).strip('"'))
        for each in found
        if matches(each["path"], path)
    ]


def _candidates(store: "S3Store | AzureStore", path: str) -> Iterable["ObjectMeta"]:
    """Return the objects to choose from: of one folder if the pattern names only one, else all below it."""
    import obstore

    first = GLOB.search(path)
    if not first:
        try:
            return [obstore.head(store, path)]
        except FileNotFoundError as error:
            if s3_and_azure_store.is_missing_bucket(error):
                raise
            return _in_folder(store, path)  # to tell that the bucket does not exist, which HEAD cannot
    if "/" not in path[first.start() :]:
        return _in_folder(store, path)
    folder = path[: first.start()].rpartition("/")[0]
    return [each for page in obstore.list(store, prefix=folder or None) for each in page]


def _in_folder(store: "S3Store | AzureStore", path: str) -> Iterable["ObjectMeta"]:
    import obstore

    return obstore.list_with_delimiter(store, prefix=path.rpartition("/")[0] or None)["objects"]


def download(file: StoredFile, path: Path) -> None:
    """Write an object to a file; see `slipway.components.ingest.storage.ObjectStore`."""
    _, name = bucket_and_path(file.name)
    arrived = partial(size_bytes, path)
    with _named(file.name), told_wait(file.name, limit_s=s3_and_azure_store.RETRY_S, arrived=arrived):
        store = _store(file.name.removesuffix(name))
        import obstore
        from obstore.exceptions import PreconditionError

        try:
            found = obstore.get(store, name, options={"if_match": f'"{file.checksum}"'})
        except (FileNotFoundError, PreconditionError) as error:
            raise FileError(f"{file.name} was deleted or replaced after it was listed", hint=QUIET) from error
        try:
            with path.open("wb") as target:
                for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
                    target.write(chunk)
                    if target.tell() > file.size_bytes:  # it may never end
                        break
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error}", hint="check its disk") from error
    if (size := path.stat().st_size) != file.size_bytes:
        came = "more" if size > file.size_bytes else f"{size}"
        raise FileError(f"{file.name} has {file.size_bytes} bytes, but {came} arrived", hint="run again")


def _store(top: str) -> "S3Store | AzureStore":
    return _store_of(top, os.getpid())


@cache
def _store_of(top: str, pid: int) -> "S3Store | AzureStore":  # noqa: ARG001
    return s3_and_azure_store.open_store(top)


@contextmanager
def _named(address: str) -> Iterator[None]:
    """Raise the store's errors as FileErrors that name the address."""
    try:
        yield
    except FileError:
        raise
    except ComponentError as error:
        raise FileError(error.message, hint=error.hint) from error
    except s3_and_azure_store.failures() as error:
        refusal = s3_and_azure_store.refusal(address, error)
        raise FileError(refusal.message, hint=refusal.hint) from error
