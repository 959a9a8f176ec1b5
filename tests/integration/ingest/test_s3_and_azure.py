"""s3:// and az:// sources, against Moto's server and Azurite: listed, pinned by ETag, read whole."""

import threading

import obstore
import pytest

from slipway.components import store_waits
from slipway.components.ingest import s3_and_azure_objects
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.storage import fetched, find_files, list_files
from slipway.components.s3_and_azure_store import open_store

pytestmark = pytest.mark.slow


@pytest.fixture
def bucket(object_server):
    return object_server.make_bucket()


@pytest.fixture
def put(bucket):
    return lambda name, data=b"a\n1\n": obstore.put(open_store(bucket), name, data)


def read(file):
    with fetched(file) as local:
        assert local.name == file.name
        return local.path.read_bytes()


def test_objects_are_listed_by_pattern(bucket, put):
    for name in ("d/1.csv", "d/2.csv", "d/x.txt", "d/sub/4.csv", "other/5.csv", "6 ü#.csv"):
        put(name)

    def named(pattern):
        return [file.name.removeprefix(f"{bucket}/") for file in find_files(f"{bucket}/{pattern}")]

    assert named("d/*.csv") == ["d/1.csv", "d/2.csv"]
    assert named("*/[45].csv") == ["other/5.csv"]
    assert named("d/*/*.csv") == ["d/sub/4.csv"]
    assert named("d/1.csv") == ["d/1.csv"]
    assert named("*.csv") == ["6 ü#.csv"]
    assert named("d/3.csv") == named("nothing/*.csv") == []
    [file] = list_files(f"{bucket}/other/*")
    assert (file.size_bytes, bool(file.checksum)) == (4, True)
    with pytest.raises(FileError, match=r"/\*\.txt matches no file"):
        list_files(f"{bucket}/*.txt")


def test_object_arrives_whole(bucket, put):
    content = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(1_000_000))
    put("d/1.csv", content)
    [file] = list_files(f"{bucket}/d/1.csv")
    assert read(file) == content


def test_object_replaced_or_deleted_after_it_was_listed_is_not_read(bucket, put):
    put("1.csv")
    put("2.csv")
    one, two = list_files(f"{bucket}/*.csv")
    put("1.csv", b"a\n2\n")
    obstore.delete(open_store(bucket), "2.csv")
    for file in (one, two):
        with pytest.raises(FileError, match="was deleted or replaced after it was listed") as caught:
            read(file)
        assert caught.value.message.startswith(file.name)


def test_bucket_that_does_not_exist_is_named(bucket):
    nowhere = f"{bucket}0"
    for pattern in ("*.csv", "d/1.csv", "*/*.csv"):
        with pytest.raises(FileError, match=r"there is no (bucket|container) 'b.*0'"):
            list_files(f"{nowhere}/{pattern}")


@pytest.mark.parametrize("object_server", ["s3"], indirect=True)
def test_listing_and_reading_are_retried(bucket, put, object_server):
    put("d/1.csv")
    object_server.fail({"kind": 503, "method": "GET", "times": 2})
    [file] = list_files(f"{bucket}/d/*.csv")
    object_server.fail({"kind": 500, "method": "GET"})
    assert read(file) == b"a\n1\n"


@pytest.mark.parametrize("object_server", ["s3"], indirect=True)
def test_denied_permission_names_the_variables_and_no_key(bucket, object_server):
    object_server.fail({"kind": 403, "times": 100})
    with pytest.raises(FileError, match="permission denied") as caught:
        list_files(f"{bucket}/*.csv")
    assert "AWS_ACCESS_KEY_ID" in caught.value.hint
    assert "hidden-key" not in str(caught.value)


def test_wait_for_a_store_that_does_not_answer_is_told(bucket, put, monkeypatch):
    put("1.csv")
    said, told = threading.Event(), []
    monkeypatch.setattr(store_waits, "FIRST_S", 0.01)
    monkeypatch.setattr(store_waits, "_say", lambda words: (told.append(words), said.set()))
    answers = s3_and_azure_objects._candidates

    def late(store, path):
        assert said.wait(60)
        return answers(store, path)

    monkeypatch.setattr(s3_and_azure_objects, "_candidates", late)
    assert [file.name for file in find_files(f"{bucket}/*.csv")] == [f"{bucket}/1.csv"]
    assert told[0].startswith(f"waiting for {bucket}/*.csv, ")
    assert told[0].endswith("given up after about 300 s without an answer")
