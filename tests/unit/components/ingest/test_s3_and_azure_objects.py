"""Objects of S3 and Azure, listed from a store in memory; with real servers: tests/integration/ingest."""

import pytest
from obstore.store import MemoryStore

from slipway.components.ingest import s3_and_azure_objects
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.s3_and_azure_objects import download, list_objects
from slipway.components.ingest.storage import StoredFile


@pytest.fixture
def memory(monkeypatch):
    store = MemoryStore()
    monkeypatch.setattr(s3_and_azure_objects, "_store", lambda top: store)
    return store


def test_objects_are_matched_level_by_level(memory):
    for name in ("d/1.csv", "d/sub/2.csv", "e/3.csv"):
        memory.put(name, b"a")

    def named(pattern):
        return sorted(file.name for file in list_objects(pattern))

    assert named("s3://b/d/*") == ["s3://b/d/1.csv"]
    assert named("s3://b/*/*.csv") == ["s3://b/d/1.csv", "s3://b/e/3.csv"]
    assert named("az://b/d/sub/2.csv") == ["az://b/d/sub/2.csv"]
    assert named("s3://b/none.csv") == []


def test_object_replaced_since_it_was_listed_is_not_read(memory, tmp_path):
    memory.put("1.csv", b"a")
    [file] = list_objects("s3://b/1.csv")
    memory.put("1.csv", b"b")
    with pytest.raises(FileError, match=r"s3://b/1\.csv was deleted or replaced after it was listed"):
        download(file, tmp_path / "x")


def test_object_of_another_size_than_listed_is_refused(memory, tmp_path):
    memory.put("1.csv", b"a")
    [file] = list_objects("s3://b/1.csv")
    with pytest.raises(FileError, match="has 2 bytes, but 1 arrived"):
        download(StoredFile(file.name, 2, checksum=file.checksum), tmp_path / "x")
