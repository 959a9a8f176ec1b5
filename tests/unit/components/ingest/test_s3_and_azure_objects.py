"""Objects of S3 and Azure, listed from a store in memory; with real servers: tests/integration/ingest."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from obstore.store import MemoryStore

from slipway.components.errors import ComponentError
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


def test_object_that_goes_on_beyond_its_size_is_not_read_to_its_end(memory, monkeypatch, tmp_path):
    memory.put("1.csv", b"a")
    [file] = list_objects("s3://b/1.csv")
    longer = SimpleNamespace(stream=lambda **_: iter([b"a", b"b", b"and so on"]))
    monkeypatch.setattr("obstore.get", lambda *_, **__: longer)
    with pytest.raises(FileError, match="has 1 bytes, but more arrived"):
        download(file, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"ab"


def test_empty_object_that_stands_for_a_folder_is_no_file(memory):
    for name, content in (("d/sub", b""), ("d/sub/1.csv", b"a"), ("d/2.csv", b"")):
        memory.put(name, content)
    assert [file.name for file in list_objects("s3://b/*/*")] == ["s3://b/d/2.csv"]


def test_disk_that_takes_no_file_is_named_rather_than_the_store(memory):
    memory.put("1.csv", b"a")
    [file] = list_objects("s3://b/1.csv")
    with pytest.raises(FileError, match=r"/dev/full cannot be written: .*No space left") as caught:
        download(file, Path("/dev/full"))
    assert caught.value.hint == "check its disk"


def test_missing_package_is_told_by_a_download(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(FileError, match="needs the package obstore"):
        download(StoredFile("s3://none/1.csv", 1, checksum="x"), tmp_path / "x")


def test_store_opened_before_a_fork_is_not_used_after_it(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    here = s3_and_azure_objects._store("s3://forked")
    assert s3_and_azure_objects._store("s3://forked") is here
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    with pytest.raises(ComponentError, match="was forked from one that has used a store"):
        s3_and_azure_objects._store("s3://forked")
