"""The check of an image's name against a real registry on loopback, which wants tokens as Docker Hub does.

Seen only here: that a real registry takes our request, our answer to its challenge, and the token, and that
what Podman has pushed there, with the login that Podman has kept, is found.
"""

import base64
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import loopback
import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from slipway.pipeline.cloud.services.image_registry import find_image

PROGRAM = shutil.which("docker-registry")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LOGIN = ("me", "secret")

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(PROGRAM is None, reason="Debian's package docker-registry is not here"),
]


class Tokens:
    """Signs tokens: for repositories below `public/` to everybody, for others to who has logged in."""

    def __init__(self, folder):
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tokens")])
        now = datetime.datetime.now(datetime.UTC)
        made = x509.CertificateBuilder(name, name, self._key.public_key(), x509.random_serial_number())
        made = made.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
        self._certificate = made.sign(self._key, hashes.SHA256())
        self.file = folder / "tokens.pem"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def give(self, scope, login):
        """A token for a scope, such as `repository:public/a:pull`, or for a login; None if it is refused."""
        _, repository, actions = scope.split(":") if scope else ("", "", "")
        if login != LOGIN and not (repository.startswith("public/") and actions == "pull"):
            return None
        certificate = self._certificate.public_bytes(serialization.Encoding.DER)
        header = {"typ": "JWT", "alg": "RS256", "x5c": [base64.b64encode(certificate).decode()]}
        access = [{"type": "repository", "name": repository, "actions": actions.split(",")}] if scope else []
        claims = {"iss": "tokens", "aud": "images", "exp": 4_000_000_000, "nbf": 0, "access": access}
        signed = b".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
        signature = self._key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        return (signed + b"." + _base64(signature)).decode()


def _base64(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=")


@pytest.fixture(scope="module")
def token_server(tmp_path_factory):
    """The tokens, and the address that gives them."""
    tokens = Tokens(tmp_path_factory.mktemp("tokens"))

    class Answers(loopback.JsonAnswers, BaseHTTPRequestHandler):
        def do_GET(self):
            [scope] = parse_qs(urlsplit(self.path).query).get("scope", [None])
            login = (self.headers["Authorization"] or "").removeprefix("Basic ")
            given = tokens.give(scope, tuple(base64.b64decode(login).decode().split(":")))
            self.answer(*(200, {"token": given}) if given else (401, {"details": "denied"}))

    with loopback.running(loopback.Server(("127.0.0.1", 0), Answers)) as address:
        yield tokens, f"{address}/token"


@pytest.fixture(scope="module")
def registry(token_server, tmp_path_factory):
    """A registry's host, with the images public/a:1 and private/a:1."""
    tokens, realm = token_server
    file = tmp_path_factory.mktemp("registry") / "config.yml"
    auth = {"realm": realm, "service": "images", "issuer": "tokens", "rootcertbundle": str(tokens.file)}
    settings = {
        "version": 0.1,
        "storage": {"inmemory": {}},
        "http": {"addr": "127.0.0.1:0"},
        "auth": {"token": auth},
    }
    file.write_text(json.dumps(settings))  # which is YAML, too
    with subprocess.Popen(
        [PROGRAM, "serve", file], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            lines = iter(process.stdout.readline, "")
            host = next(found[0] for line in lines if (found := re.findall(r"listening on ([\d.:]+)", line)))
            threading.Thread(target=process.stdout.read, daemon=True).start()
            for repository in ("public/a", "private/a"):
                push(host, repository, tokens.give(f"repository:{repository}:pull,push", LOGIN))
            yield host
        finally:
            process.terminate()


def push(host, repository, token):
    """Pushes an image without layers, tagged 1."""
    here, headers = f"http://{host}/v2/{repository}", {"Authorization": f"Bearer {token}"}
    config = b"{}"
    digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    started = requests.post(f"{here}/blobs/uploads/", headers=headers, timeout=60)
    there = started.headers["Location"]
    requests.put(
        there, params={"digest": digest}, data=config, headers=headers, timeout=60
    ).raise_for_status()
    kind = {"mediaType": "application/vnd.oci.image.config.v1+json", "size": len(config), "digest": digest}
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": kind, "layers": []}
    put = requests.put(
        f"{here}/manifests/1", json=manifest, headers={**headers, "Content-Type": MANIFEST}, timeout=60
    )
    put.raise_for_status()


@pytest.fixture
def logins(tmp_path, monkeypatch):
    """The file of Docker's logins; it is not there."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path / "config.json"


def test_public_image_is_found_and_another_tag_is_missing(registry, logins):
    assert find_image(f"{registry}/public/a:1", credentials=None) is True
    assert find_image(f"{registry}/public/a:2", credentials=None) is False


def test_private_image_is_found_by_who_has_logged_in(registry, logins, token_server):
    realm = urlsplit(token_server[1]).netloc
    assert find_image(f"{registry}/private/a:1", credentials=None) == (
        f"{realm} gives no token for it (401); a private image needs: docker login {registry}, "
        "with the login kept in Docker's file"
    )
    login = base64.b64encode(":".join(LOGIN).encode()).decode()
    logins.write_text(json.dumps({"auths": {registry: {"auth": login}}}))
    assert find_image(f"{registry}/private/a:1", credentials=None) is True
    assert find_image(f"{registry}/private/a:2", credentials=None) is False


@pytest.mark.skipif(
    os.getuid() != 0 or not all(map(shutil.which, ("buildah", "podman"))),
    reason="an image is built and pushed by root, with buildah and podman",
)
def test_image_that_podman_pushed_is_found_with_podman_s_login_and_comes_back_the_same(
    registry, logins, storage, tmp_path
):
    def run(*words, told=None):
        environment = {**os.environ, **storage}
        done = subprocess.run(words, env=environment, input=told, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    name, there = f"{registry}/private/pushed:1", ("--tls-verify=false", f"--authfile={logins}")
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
    run("buildah", "build", "--isolation=chroot", "--tag", name, str(tmp_path))
    made = run("podman", "image", "inspect", "--format", "{{.Id}}", name)
    user, password = LOGIN
    run("podman", "login", *there, "--username", user, "--password-stdin", registry, told=password)
    assert find_image(name, credentials=None) is False
    run("podman", "push", *there, name)
    assert find_image(name, credentials=None) is True
    run("podman", "rmi", name)
    run("podman", "pull", *there, name)
    assert run("podman", "image", "inspect", "--format", "{{.Id}}", name) == made
