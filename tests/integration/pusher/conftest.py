"""A strict Cloud Storage on loopback, in a process of its own, and a small model."""

import contextlib
import json
import subprocess
import sys
import urllib.request
import uuid
from pathlib import Path

import pytest

from slipway.components.pusher import google_folder, model_lock


class Cloud:
    """What tests do to the store."""

    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}"

    def fail(self, *faults):
        """The faults that the next requests meet, see strict_store.py; none: all is well again."""
        self._ask("POST", "/_faults", faults)

    def requests(self):
        return self._ask("GET", "/_requests")

    def forget_requests(self):
        self._ask("DELETE", "/_requests")

    def make_bucket(self, name):
        self._ask("PUT", f"/_buckets/{name}")

    def _ask(self, method, path, document=None):
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.address + path, data=data, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)


@pytest.fixture(scope="session")
def store():
    """One store for all tests: each has buckets of its own."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("strict_store.py"))], stdout=subprocess.PIPE, text=True
    )
    yield Cloud(int(process.stdout.readline()))
    process.terminate()
    process.wait()
    process.stdout.close()


@pytest.fixture
def cloud(store, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", store.address)
    # Tries and looks follow each other faster: nobody else is in the way here.
    monkeypatch.setattr(google_folder, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(model_lock, "LOOK_S", 0.02)
    monkeypatch.setattr(google_folder, "FIRST_ANSWER_S", 120.0)  # a busy machine takes its time
    store.fail()
    store.forget_requests()
    yield store
    store.fail()


@pytest.fixture
def base(cloud):
    """gs:// address of the versions, in a bucket of the test's own, each time."""
    name = f"b{uuid.uuid4().hex}"
    cloud.make_bucket(name)
    return f"gs://{name}/serving/taxi"


@pytest.fixture
def contents(base):
    """Looks what the store holds below the base now: objects by name."""

    def look():
        with contextlib.closing(google_folder.Folder(base)) as folder:
            return folder.list()

    return look


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "assets").mkdir()
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables/variables.index").write_bytes(b"index")
    (folder / "variables/variables.data-00000-of-00001").write_bytes(b"weights" * 100)
    return folder
