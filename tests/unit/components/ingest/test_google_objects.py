from http.server import BaseHTTPRequestHandler

import loopback
import pytest

from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.google_objects import bucket_location

pytestmark = pytest.mark.slow  # imports Google's client


class Store(loopback.JsonAnswers, BaseHTTPRequestHandler):
    """Knows one bucket."""

    def do_GET(self):
        is_known = self.path.startswith("/storage/v1/b/trips?")
        bucket = {"name": "trips", "location": "EUROPE-WEST4"}
        self.answer(*(200, bucket) if is_known else (404, {}))


@pytest.fixture
def _store(monkeypatch):
    from slipway.components.ingest import google_objects

    with loopback.running(loopback.Server(("127.0.0.1", 0), Store)) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        google_objects._client_of.cache_clear()
        yield
        google_objects._client_of.cache_clear()


@pytest.mark.usefixtures("_store")
def test_location_of_a_bucket_is_what_the_store_says():
    assert bucket_location("trips") == "EUROPE-WEST4"


@pytest.mark.usefixtures("_store")
def test_a_bucket_that_is_not_there_is_reported():
    with pytest.raises(FileError, match="no bucket 'none'"):
        bucket_location("none")
