"""Objects below an address, in a store in memory; against real servers: tests/integration."""

import threading

import pytest
from obstore.store import MemoryStore

from slipway.components import s3_and_azure_store, store_waits
from slipway.components.errors import ComponentError
from slipway.components.stored_objects import StoredObjects


@pytest.fixture
def memory(monkeypatch):
    store = MemoryStore()
    monkeypatch.setattr(s3_and_azure_store, "open_store", lambda address: store)
    return store


@pytest.mark.parametrize("address", ["s3://b/d", "minio://b/d/", "az://b/d"])
def test_objects_are_named_from_their_address_on(memory, address):
    for name in ("d/1.txt", "d/sub/2.txt", "de/3.txt", "4.txt"):
        memory.put(name, b"a")
    objects = StoredObjects(address)
    assert objects.names() == ["1.txt", "sub/2.txt"]
    assert objects.children() == ["1.txt", "sub"]
    assert StoredObjects("s3://b").children() == ["4.txt", "d", "de"]


def test_last_writer_wins_and_what_is_removed_is_gone(memory):
    objects = StoredObjects("s3://b/d")
    assert not objects.exist()
    objects.write("x/1.txt", b"first")
    objects.write("x/1.txt", b"second")
    assert (objects.exist(), objects.read("x/1.txt")) == (True, b"second")
    objects.remove("x/1.txt")
    objects.remove("x/1.txt")
    assert not objects.exist()
    with pytest.raises(FileNotFoundError, match="s3://b/d: "):
        objects.read("x/1.txt")


def test_folder_travels_there_and_back_without_what_a_store_cannot_hold(memory, tmp_path):
    (tmp_path / "here/sub/empty").mkdir(parents=True)
    (tmp_path / "here/1.bin").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "here/sub/2.txt").write_text("two")
    objects = StoredObjects("s3://b/made")
    objects.put(tmp_path / "here")
    objects.fetch(tmp_path / "there")
    found = {p.relative_to(tmp_path / "there").as_posix(): p for p in (tmp_path / "there").rglob("*")}
    assert found.keys() == {"1.bin", "sub", "sub/2.txt"}
    assert found["1.bin"].read_bytes() == (tmp_path / "here/1.bin").read_bytes()
    assert found["sub/2.txt"].read_text() == "two"
    StoredObjects("s3://b/nothing").fetch(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_no_bucket_is_told_as_what_it_is_and_not_as_a_missing_object(monkeypatch):
    class Closed:
        def get(self, *_, **__):
            raise FileNotFoundError("<Code>NoSuchBucket</Code><Message>none</Message>")

    import obstore

    monkeypatch.setattr(s3_and_azure_store, "open_store", lambda address: Closed())
    monkeypatch.setattr(obstore, "get", lambda store, name: store.get(name))
    with pytest.raises(ComponentError, match=r"s3://b/d: there is no bucket 'b'"):
        StoredObjects("s3://b/d").read("1.txt")


def test_wait_for_an_object_is_told(memory, monkeypatch):
    import obstore

    memory.put("d/1.txt", b"a")
    said, told = threading.Event(), []
    monkeypatch.setattr(store_waits, "FIRST_S", 0.01)
    monkeypatch.setattr(store_waits, "_say", lambda words: (told.append(words), said.set()))
    answers = obstore.get

    def late(*given):
        assert said.wait(60)
        return answers(*given)

    monkeypatch.setattr(obstore, "get", late)
    assert StoredObjects("s3://b/d").read("1.txt") == b"a"
    assert told[0].startswith("waiting for s3://b/d, ")
    assert told[0].endswith("given up after about 300 s without an answer")
