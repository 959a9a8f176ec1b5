"""gs:// sources: listed with generations, read whole at these, verified, retried; and what failures tell."""

import contextlib
import gc
import gzip
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest
from loopback import reserved_port
from requests.adapters import HTTPAdapter

from slipway.components import store_waits
from slipway.components.ingest import google_objects
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.storage import fetched, list_files

pytestmark = [
    pytest.mark.slow,
    # The client leaves a connection that broke to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch, cloud):
    """Each test has a client of its own store, and gives up after a minute."""
    google_objects._client_of.cache_clear()
    monkeypatch.setattr(google_objects, "_RETRY_S", 60.0)
    yield
    google_objects._client().close()
    google_objects._client_of.cache_clear()


@pytest.fixture(autouse=True, scope="module")
def _connections_are_collected_here():
    """A connection whose answer the client did not read is no later test's to warn of."""
    yield
    gc.collect()


@pytest.fixture
def content():
    return b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(200_000))


def read(file):
    with fetched(file) as local:
        assert local.name == file.name
        return local.path.read_bytes()


def test_objects_are_listed_over_pages_by_pattern(cloud):
    for name in ("d/1.csv", "d/2.csv", "d/3.csv", "d/x.txt", "d/sub/4.csv", "other/5.csv"):
        cloud.put("b", name, b"a\n1\n")
    assert [file.name for file in list_files("gs://b/d/*.csv")] == [f"gs://b/d/{i}.csv" for i in (1, 2, 3)]
    cloud.put("b", "d/sub/", b"")  # stands for the folder
    assert "gs://b/d/sub/" not in [file.name for file in list_files("gs://b/d/*")]
    assert [file.name for file in list_files("gs://b/*/[45].csv")] == ["gs://b/other/5.csv"]
    assert [file.name for file in list_files("gs://b/d/1.csv")] == ["gs://b/d/1.csv"]
    [file] = list_files("gs://b/other/*")
    assert (file.size_bytes, file.generation > 0, len(file.checksum)) == (4, True, 8)


@pytest.mark.parametrize("fault", [None, "503", "drop", "truncate"])
def test_object_arrives_whole_whatever_the_network_does_once(cloud, content, fault):
    cloud.put("b", "d/1.csv", content)
    [file] = list_files("gs://b/d/1.csv")
    if fault:
        cloud.spoil(fault)
    assert read(file) == content
    assert any(f"generation={file.generation}" in request for request in cloud.requests())


@pytest.mark.parametrize("fault", [None, "503", "drop", "truncate"])
def test_object_that_the_store_keeps_compressed_arrives_as_others_get_it(cloud, content, fault):
    packed = gzip.compress(content)
    cloud.put("b", "d/1.csv", packed, encoding="gzip")
    cloud.put("b", "d/2.csv.gz", packed, encoding="gzip")
    plain, named = list_files("gs://b/d/*")
    if fault:
        cloud.spoil(fault)
    assert (read(plain), plain.size_bytes) == (content, len(packed))
    assert read(named) == packed, "unpacked by its name"


def test_object_that_is_not_compressed_as_its_store_says_is_named(cloud):
    cloud.put("b", "1.csv", b"a,b\n1,2\n", encoding="gzip")
    [file] = list_files("gs://b/1.csv")
    with pytest.raises(FileError, match="not compressed with gzip, as its Content-Encoding says") as caught:
        read(file)
    assert caught.value.hint.endswith("--clear-content-encoding gs://b/1.csv")


def test_object_cut_short_is_resumed_not_read_anew(cloud, content):
    cloud.put("b", "d/1.csv", content)
    [file] = list_files("gs://b/d/1.csv")
    cloud.spoil("truncate")
    assert read(file) == content
    first, second = [request for request in cloud.requests() if "alt=media" in request]
    assert "bytes=" not in first
    begin = int(second.rpartition(" bytes=")[2].removesuffix("-"))
    assert len(content) // 4 < begin <= len(content) // 2


@pytest.fixture
def stall(cloud, monkeypatch):
    """Leaves the next request, which has a short limit, without an answer; others are answered, if late."""
    send, stalled = HTTPAdapter.send, []

    def sent(adapter, request, **options):
        # The client also looks at the bucket, by itself and whenever it likes.
        if stalled and "o" in urlsplit(request.url).path.split("/"):
            stalled.clear()
            options["timeout"] = 0.5
        return send(adapter, request, **options)

    def call():
        monkeypatch.setattr(HTTPAdapter, "send", sent)
        cloud.spoil("stall")
        stalled.append(True)

    return call


@pytest.mark.parametrize("first", ["listing", "object"])
def test_store_that_does_not_answer_is_asked_again(cloud, content, stall, first):
    cloud.put("b", "d/1.csv", content)
    if first == "listing":
        stall()
    [file] = list_files("gs://b/d/1.csv")
    if first == "object":
        stall()
    assert read(file) == content


@pytest.mark.parametrize("first", ["listing", "object"])
def test_wait_for_a_store_that_does_not_answer_is_told(cloud, content, stall, monkeypatch, capsys, first):
    monkeypatch.setattr(store_waits, "FIRST_S", 0.02)
    cloud.put("b", "d/1.csv", content)
    if first == "listing":
        stall()
    [file] = list_files("gs://b/d/*.csv")
    if first == "object":
        stall()
        assert read(file) == content
    told = capsys.readouterr().err
    assert f"waiting for gs://b/d/{'*' if first == 'listing' else '1'}.csv, " in told
    assert "given up after about 60 s without an answer" in told


def test_listing_is_retried(cloud):
    cloud.put("b", "1.csv", b"a\n1\n")
    cloud.spoil("503")
    assert len(list_files("gs://b/*.csv")) == 1


def test_corrupted_object_is_never_taken(cloud, content):
    cloud.put("b", "d/1.csv", content)
    [file] = list_files("gs://b/d/1.csv")
    cloud.spoil("corrupt", times=20)
    with pytest.raises(FileError, match="was corrupted on the way: its checksum differs"):
        read(file)


def test_object_replaced_after_it_was_listed_is_not_read(cloud):
    cloud.put("b", "1.csv", b"a\n1\n")
    [file] = list_files("gs://b/1.csv")
    cloud.put("b", "1.csv", b"a\n2\n")
    with pytest.raises(FileError, match=r"gs://b/1\.csv was deleted or replaced after it was listed"):
        read(file)


def test_object_replaced_while_it_is_read_is_not_mixed(cloud, content):
    cloud.put("b", "1.csv", content)
    [file] = list_files("gs://b/1.csv")
    cloud.spoil("replace")
    with pytest.raises(
        FileError, match=r"gs://b/1\.csv was deleted or replaced after it was listed"
    ) as caught:
        read(file)
    assert caught.value.hint == "run again once nothing is writing there"


def test_object_deleted_after_it_was_listed_is_named(cloud):
    cloud.put("b", "1.csv", b"a\n1\n")
    [file] = list_files("gs://b/1.csv")
    cloud.delete("b", "1.csv")
    with pytest.raises(FileError, match="was deleted or replaced"):
        read(file)


def test_bucket_that_does_not_exist_is_named(cloud):
    with pytest.raises(FileError, match="there is no bucket 'nowhere'") as caught:
        list_files("gs://nowhere/*.csv")
    assert caught.value.hint == "check data.source"


def test_pattern_without_objects_is_named(cloud):
    cloud.put("b", "1.csv", b"a\n1\n")
    with pytest.raises(FileError, match=r"gs://b/\*\.txt matches no file"):
        list_files("gs://b/*.txt")


def test_denied_permission_comes_with_the_command_to_log_in(cloud):
    cloud.put("b", "1.csv", b"a\n1\n")
    cloud.spoil("403")
    with pytest.raises(FileError, match="permission denied") as caught:
        list_files("gs://b/*.csv")
    assert "gcloud auth application-default login" in caught.value.hint


def test_store_that_stays_away_is_given_up(cloud, monkeypatch):
    monkeypatch.setattr(google_objects, "_RETRY_S", 1.0)
    cloud.put("b", "1.csv", b"a\n1\n")
    cloud.spoil("503", times=100)
    with pytest.raises(FileError, match="cannot be read: "):
        list_files("gs://b/*.csv")


@pytest.fixture
def emulator(monkeypatch):
    """The storage emulator that others wrote, in a process of its own; returns a client of it."""
    with reserved_port() as port:
        command = [
            sys.executable,
            "-m",
            "gcp_storage_emulator",
            "start",
            "--host=127.0.0.1",
            f"--port={port}",
            "-qM",
        ]
        process = subprocess.Popen(command)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        google_objects._client_of.cache_clear()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
    yield google_objects._client()
    process.terminate()
    process.wait()


def test_another_emulator_is_read_alike(emulator, content):
    # It knows neither generations nor faults: those are the other store's part.
    bucket = emulator.create_bucket("b")
    for name in ("d/1.csv", "d/2.csv", "d/x.txt"):
        bucket.blob(name).upload_from_string(content)
    files = list_files("gs://b/d/*.csv")
    assert [(file.name, file.size_bytes) for file in files] == [
        (f"gs://b/d/{i}.csv", len(content)) for i in (1, 2)
    ]
    assert read(files[1]) == content
    with pytest.raises(FileError, match="there is no bucket 'nowhere'"):
        list_files("gs://nowhere/*.csv")
    bucket.blob("d/1.csv").delete()
    with pytest.raises(FileError, match="was deleted or replaced"):
        read(files[0])
