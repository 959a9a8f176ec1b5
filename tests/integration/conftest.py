"""gs://, s3:// and az:// on loopback, for all that uses them; and trainings that import little."""

import base64
import hashlib
import hmac
import json
import shutil
import subprocess
import sys
import urllib.request
import uuid
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from email.utils import formatdate
from pathlib import Path

import pytest

AZURITE = Path(__file__).parents[2] / ".engines/azurite/node_modules/azurite/dist/src/blob/main.js"
# Of Azurite's one account; both are published.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


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
    from slipway.components import process_pool

    pids = set()
    share_out, do = process_pool.ProcessPool.map, process_pool._Worker.do

    def when_all_are_ready(self, *given, **more):
        wait(self._started.values())
        return share_out(self, *given, **more)

    def noted(self, *given):
        done = do(self, *given)
        pids.add(self.pid)
        return done

    monkeypatch.setattr(process_pool.ProcessPool, "map", when_all_are_ready)
    monkeypatch.setattr(process_pool._Worker, "do", noted)
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
        urllib.request.urlopen(urllib.request.Request(bucket, method="PUT"), timeout=60).close()
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


class S3:
    """What tests do to Moto's S3, see s3_store.py."""

    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}"
        self.variables = {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "hidden-key",
            "AWS_REGION": "us-east-1",
        }

    def make_bucket(self):
        name = f"b{uuid.uuid4().hex}"
        self.ask("PUT", f"/{name}")
        return f"s3://{name}"

    def fail(self, *faults):
        self.ask("POST", "/_faults", json.dumps(faults).encode())

    def requests(self):
        return json.loads(self.ask("GET", "/_requests"))

    def ask(self, method, path, data=None):
        request = urllib.request.Request(self.address + path, data, method=method)  # noqa: S310
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.read()


class Azure:
    """What tests do to Azurite, Microsoft's own emulator."""

    def __init__(self, address):
        self.address = f"{address}/{ACCOUNT}"
        self.variables = {
            "AZURE_STORAGE_ENDPOINT": self.address,
            "AZURE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
        }

    def make_bucket(self):
        name = f"b{uuid.uuid4().hex}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        signed = "".join(f"{key}:{value}\n" for key, value in headers.items())
        text = "PUT" + "\n" * 12 + signed + f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
        code = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(code).decode()}"
        url = f"{self.address}/{name}?restype=container"
        request = urllib.request.Request(url, method="PUT", headers=headers)  # noqa: S310
        urllib.request.urlopen(request, timeout=60).close()  # noqa: S310
        return f"az://{name}"


@pytest.fixture(scope="session")
def s3_server():
    with running(Path(__file__).with_name("s3_store.py")) as port:
        yield S3(port)


@pytest.fixture(scope="session")
def azure_server():
    if shutil.which("node") is None or not AZURITE.exists():
        pytest.skip("Azurite is not here: make azurite")
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    command = ["node", AZURITE, "--blobPort", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = iter(process.stdout.readline, "")
            yield Azure(next(line.split()[-1] for line in lines if "successfully listens" in line))
        finally:
            process.terminate()


@pytest.fixture(params=["s3", pytest.param("az", marks=pytest.mark.external)])
def object_server(request, monkeypatch):
    """S3 or Azure, which the environment names."""
    from slipway.components.ingest import s3_and_azure_objects

    server = request.getfixturevalue({"s3": "s3_server", "az": "azure_server"}[request.param])
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    if request.param == "s3":
        server.fail()
    s3_and_azure_objects._store_of.cache_clear()
    yield server
    s3_and_azure_objects._store_of.cache_clear()
