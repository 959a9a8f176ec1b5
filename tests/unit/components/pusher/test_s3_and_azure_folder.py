"""A folder of S3 at a server that is slow to write and never lists; real ones: tests/integration/pusher."""

import dataclasses
import threading
import time
from http.server import BaseHTTPRequestHandler

import loopback
import pytest
from obstore.store import MemoryStore

from slipway.components.errors import ComponentError
from slipway.components.pusher import s3_and_azure_folder
from slipway.components.pusher.s3_and_azure_folder import S3AndAzureFolder

ANSWERS_AFTER_S = 0.6
NOTHING = b"<ListBucketResult><Name>b</Name><Prefix/><IsTruncated>false</IsTruncated></ListBucketResult>"


class Slow(BaseHTTPRequestHandler):
    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(ANSWERS_AFTER_S)
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(NOTHING)))
        self.end_headers()
        self.wfile.write(NOTHING)

    def do_GET(self):
        self.server.is_over.wait()
        self.close_connection = True

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    server = loopback.Server(("127.0.0.1", 0), Slow)
    server.is_over = threading.Event()
    with loopback.running(server) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
        monkeypatch.setattr(s3_and_azure_folder, "FIRST_ANSWER_S", 0.3)
        yield server
        server.is_over.set()


def test_large_file_may_take_longer_to_send_than_an_answer(server, tmp_path):
    (tmp_path / "x").write_bytes(bytes(8 * 2**20 + 1))
    folder = S3AndAzureFolder("s3://b/x")
    folder._put("x", tmp_path / "x", {}, "create")


def test_first_answer_is_not_waited_for_longer_than_its_limit(server):
    with pytest.raises(ComponentError, match=r"s3://b/x (did not answer within 0 s|cannot be used)"):
        S3AndAzureFolder("s3://b/x").list()


def test_object_that_goes_on_beyond_its_size_is_not_read_to_its_end(monkeypatch):
    store = MemoryStore()
    store.put("x/a", bytes(3 * s3_and_azure_folder._CHUNK_BYTES))
    monkeypatch.setattr(s3_and_azure_folder, "open_store", lambda *_, **__: store)
    folder = S3AndAzureFolder("s3://b/x")
    taken = []
    with pytest.raises(s3_and_azure_folder._DamagedError):
        folder._streamed(dataclasses.replace(folder.find("a"), size_bytes=2), taken.append)
    assert not taken
