"""gs://, s3:// and az:// on loopback, for tests and benchmarks: ours, Moto's and Microsoft's servers."""

import base64
import hashlib
import hmac
import json
import shutil
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

_PROJECT = Path(__file__).parents[2]
_AZURITE = _PROJECT / ".engines/azurite/node_modules/azurite/dist/src/blob/main.js"
# Of Azurite's one account; both are published.
_ACCOUNT = "devstoreaccount1"
_ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def _here(*command):
    return list(map(str, command))


@contextmanager
def running(*command, on=_here):
    """A server that prints its port; `on` makes a command one that runs elsewhere."""
    with subprocess.Popen(on(sys.executable, *command), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


@contextmanager
def google(folder: Path, *, host: str = "127.0.0.1", on=_here) -> Iterator[dict[str, str]]:
    """A strict Cloud Storage with the bucket `bucket`, as variables that lead all clients there.

    Args:
        folder: gets its certificate, and an account.
        host: the address at which it listens, where `on` lets a command run.
    """
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
    servers = _PROJECT / "tests/integration"
    with (
        running(servers / "pusher/strict_store.py", host, "bucket", on=on) as store,
        running(servers / "cloud/gs_proxy.py", store, pem, host, on=on) as proxy,
    ):
        account.write_text(
            json.dumps(
                {
                    "type": "service_account",
                    "client_email": "a@p.iam.gserviceaccount.com",
                    "private_key": (folder / "key.pem").read_text(),
                    "token_uri": f"http://{host}:{proxy}/token",
                    "project_id": "p",
                }
            )
        )
        yield {
            "STORAGE_EMULATOR_HOST": f"http://{host}:{store}",
            "http_proxy": f"http://{host}:{proxy}",
            "https_proxy": f"http://{host}:{proxy}",
            "no_proxy": f"127.0.0.1,localhost,{host}",
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
        self.address = f"{address}/{_ACCOUNT}"
        self.variables = {
            "AZURE_STORAGE_ENDPOINT": self.address,
            "AZURE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _ACCOUNT_KEY,
        }

    def make_bucket(self):
        name = f"b{uuid.uuid4().hex}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        signed = "".join(f"{key}:{value}\n" for key, value in headers.items())
        text = "PUT" + "\n" * 12 + signed + f"/{_ACCOUNT}/{_ACCOUNT}/{name}\nrestype:container"
        code = hmac.new(base64.b64decode(_ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(code).decode()}"
        url = f"{self.address}/{name}?restype=container"
        request = urllib.request.Request(url, method="PUT", headers=headers)  # noqa: S310
        urllib.request.urlopen(request, timeout=60).close()  # noqa: S310
        return f"az://{name}"


@contextmanager
def s3() -> Iterator[S3]:
    """Moto's S3, in a process of its own."""
    with running(_PROJECT / "tests/integration/s3_store.py") as port:
        yield S3(port)


def has_azurite() -> bool:
    """Whether Azurite is here: `make azurite`, and a Node to run it."""
    return shutil.which("node") is not None and _AZURITE.exists()


@contextmanager
def azure() -> Iterator[Azure]:
    """Azurite, in a process of its own."""
    options = ["--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    command = ["node", _AZURITE, "--blobPort", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = iter(process.stdout.readline, "")
            yield Azure(next(line.split()[-1] for line in lines if "successfully listens" in line))
        finally:
            process.terminate()
