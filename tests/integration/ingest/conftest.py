"""A Cloud Storage on loopback, in a process of its own."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from slipway.components.ingest import google_objects


class Cloud:
    """What tests do to the store; `address` is what STORAGE_EMULATOR_HOST holds."""

    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}"

    def put(self, bucket, name, data, *, encoding=None):
        self._ask(
            "PUT", f"/_objects/{bucket}/{name}", data, {"Content-Encoding": encoding} if encoding else {}
        )

    def delete(self, bucket, name):
        self._ask("DELETE", f"/_objects/{bucket}/{name}")

    def spoil(self, kind, times=1):
        self._ask("POST", "/_faults", json.dumps({"kind": kind, "times": times}).encode())

    def requests(self):
        return json.loads(self._ask("GET", "/_requests"))

    def _ask(self, method, path, data=None, headers=None):
        request = urllib.request.Request(self.address + path, data, headers or {}, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.read()


@pytest.fixture
def cloud(monkeypatch):
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("object_store.py"))], stdout=subprocess.PIPE, text=True
    )
    found = Cloud(int(process.stdout.readline()))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", found.address)
    google_objects._client_of.cache_clear()  # it keeps the address that it was made with
    yield found
    google_objects._client_of.cache_clear()
    process.terminate()
    process.wait()
    process.stdout.close()
