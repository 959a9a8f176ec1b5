import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.google_objects import bucket_location

pytestmark = pytest.mark.slow  # imports Google's client


class Store(BaseHTTPRequestHandler):
    """Knows one bucket."""

    def do_GET(self):
        is_known = self.path.startswith("/storage/v1/b/trips?")
        answer = json.dumps({"name": "trips", "location": "EUROPE-WEST4"} if is_known else {}).encode()
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *words):
        pass


@pytest.fixture
def _store(monkeypatch):
    from slipway.components.ingest import google_objects

    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
        google_objects._client_of.cache_clear()
        yield
        google_objects._client_of.cache_clear()
        server.shutdown()


@pytest.mark.usefixtures("_store")
def test_location_of_a_bucket_is_what_the_store_says():
    assert bucket_location("trips") == "EUROPE-WEST4"


@pytest.mark.usefixtures("_store")
def test_a_bucket_that_is_not_there_is_reported():
    with pytest.raises(FileError, match="no bucket 'none'"):
        bucket_location("none")
