"""A gs:// on loopback, for all that reads and writes there; and trainings that import little."""

import json
import subprocess
import sys
import urllib.request
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest


@contextmanager
def running(*command):
    """A server that prints its port."""
    with subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def forked(warm):
    """Python modules get processes that are forked from the warm one, as in a run: they import little."""
    from slipway.components import python_process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_process, "fork_channel", warm._line)
        yield warm


@pytest.fixture
def beside(monkeypatch):
    """The processes beside this one that did a task: each of them gets one before this one begins."""
    from slipway.components import worker_pool

    pids = set()
    share_out, do = worker_pool.ProcessPool.map, worker_pool._Worker.do

    def when_all_are_ready(self, *given, **more):
        wait(self._started.values())
        return share_out(self, *given, **more)

    def noted(self, *given):
        done = do(self, *given)
        pids.add(self.pid)
        return done

    monkeypatch.setattr(worker_pool.ProcessPool, "map", when_all_are_ready)
    monkeypatch.setattr(worker_pool._Worker, "do", noted)
    return pids


@pytest.fixture(scope="module")
def gs(tmp_path_factory):
    """A strict Cloud Storage with the bucket `bucket`, as variables that lead all clients there."""
    folder = tmp_path_factory.mktemp("gs")
    pem, account = folder / "server.pem", folder / "account.json"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=*.googleapis.com", "-addext", "subjectAltName=DNS:*.googleapis.com"),
            *("-keyout", "key.pem", "-out", "certificate.pem"),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    pem.write_text((folder / "key.pem").read_text() + (folder / "certificate.pem").read_text())
    here = Path(__file__).parent
    with ExitStack() as servers:
        store = servers.enter_context(running(here / "pusher" / "strict_store.py"))
        proxy = servers.enter_context(running(here / "cloud" / "gs_proxy.py", store, pem))
        bucket = f"http://127.0.0.1:{store}/_buckets/bucket"
        urllib.request.urlopen(urllib.request.Request(bucket, method="PUT"), timeout=10).close()
        account.write_text(
            json.dumps(
                {
                    "type": "service_account",
                    "client_email": "a@p.iam.gserviceaccount.com",
                    "private_key": (folder / "key.pem").read_text(),
                    "token_uri": f"http://127.0.0.1:{proxy}/token",
                    "project_id": "p",
                }
            )
        )
        yield {
            "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{store}",
            "http_proxy": f"http://127.0.0.1:{proxy}",
            "https_proxy": f"http://127.0.0.1:{proxy}",
            "no_proxy": "127.0.0.1,localhost",
            "CURL_CA_BUNDLE": str(folder / "certificate.pem"),
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "x",
            "GOOGLE_APPLICATION_CREDENTIALS": str(account),
            "NO_GCE_CHECK": "true",
        }
