"""Names of container images, and who is shown a token."""

import json
import time
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace
from typing import ClassVar

import loopback
import pytest
import requests

from slipway.pipeline.cloud.services import image_registry
from slipway.pipeline.cloud.services.image_registry import ImageName, find_image


@pytest.mark.parametrize(
    ("name", "url", "takes_tokens"),
    [
        (
            "europe-west4-docker.pkg.dev/p/r/slipway:1.0",
            "https://europe-west4-docker.pkg.dev/v2/p/r/slipway/manifests/1.0",
            True,
        ),
        ("gcr.io/p/slipway", "https://gcr.io/v2/p/slipway/manifests/latest", True),
        ("evil.example/pkg.dev/x:1", "https://evil.example/v2/pkg.dev/x/manifests/1", False),
        ("notgcr.io/x:1", "https://notgcr.io/v2/x/manifests/1", False),
        ("host:5000/a/b@sha256:ab", "https://host:5000/v2/a/b/manifests/sha256:ab", False),
        ("127.0.0.1:5000/a:1", "http://127.0.0.1:5000/v2/a/manifests/1", False),
        ("python:3.11", "https://registry-1.docker.io/v2/library/python/manifests/3.11", False),
        ("docker.io/python", "https://registry-1.docker.io/v2/library/python/manifests/latest", False),
        ("index.docker.io/a/b:1", "https://registry-1.docker.io/v2/a/b/manifests/1", False),
    ],
)
def test_name_leads_to_the_manifest_as_docker_reads_it(name, url, takes_tokens):
    image = ImageName.parse(name)
    assert (image.url, image.takes_google_tokens) == (url, takes_tokens)
    assert image.is_sound


@pytest.mark.parametrize(
    "name",
    ["evil.example#.pkg.dev/p/r:1", "evil.example?.gcr.io/p:1", "me@evil.example:1#.pkg.dev/p:1",
     "evil.example\\.pkg.dev/p:1", "a.pkg.dev/p#/r:1", "a.pkg.dev/p:1 2", "a.pkg.dev:x/p:1",
     "a.pkg.dev/\n:1"],
)  # fmt: skip
def test_name_that_leads_elsewhere_is_asked_for_nowhere(name, monkeypatch):
    monkeypatch.setattr(image_registry, "_ask", None)  # called, it would fail
    assert not ImageName.parse(name).is_sound
    assert "is not an image name" in find_image(name, credentials=None)


class Registry(BaseHTTPRequestHandler):
    """A registry on loopback that wants a token, or a login; keeps what each request was authorised with."""

    challenge = 'Bearer realm="{here}/token",service="s",scope="repository:a:pull"'
    given = '{"token": "T"}'
    seen: ClassVar[list] = []

    def do_HEAD(self):
        self.seen.append(("image", self.headers["Authorization"]))
        allowed = self.headers["Authorization"] in ("Bearer T", LOGIN)
        known = self.path == "/v2/a/manifests/1"
        self.send_response((200 if known else 404) if allowed else 401)
        self.send_header("WWW-Authenticate", self.challenge.format(here=f"http://{self.headers['Host']}"))
        self.end_headers()

    def do_GET(self):
        self.seen.append((self.path, self.headers["Authorization"]))
        self.send_response(200 if self.given else 403)
        self.end_headers()
        self.wfile.write((self.given or "refused").encode())

    def log_message(self, *_):
        pass


LOGIN = "Basic bWU6c2VjcmV0"


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """A registry's host, and the class that answers for it; nobody has logged in anywhere."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    kind = type("OfOneTest", (Registry,), {"seen": []})
    with loopback.running(loopback.Server(("127.0.0.1", 0), kind)) as address:
        yield address.removeprefix("http://"), kind


def log_in(folder, host):
    """As `docker login` does."""
    login = LOGIN.removeprefix("Basic ")
    (folder / "config.json").write_text(json.dumps({"auths": {host: {"auth": login}}}))


def test_token_is_fetched_where_the_registry_says(registry):
    host, kind = registry
    assert find_image(f"{host}/a:1", credentials=None) is True
    assert find_image(f"{host}/a:2", credentials=None) is False
    assert kind.seen[:3] == [
        ("image", None), ("/token?service=s&scope=repository%3Aa%3Apull", None), ("image", "Bearer T"),
    ]  # fmt: skip


def test_private_image_is_asked_for_with_the_login_of_docker(registry, tmp_path):
    host, kind = registry
    log_in(tmp_path, host)
    assert find_image(f"{host}/a:1", credentials=None) is True
    assert kind.seen[1][1] == LOGIN, "who asks for the token"
    kind.challenge = 'Basic realm="r"'
    assert find_image(f"{host}/a:1", credentials=None) is True
    assert kind.seen[-1] == ("image", LOGIN)


def test_login_for_another_registry_is_kept_back(registry, tmp_path):
    host, kind = registry
    log_in(tmp_path, "ghcr.io")
    assert find_image(f"{host}/a:1", credentials=None) is True
    assert LOGIN not in [authorization for _, authorization in kind.seen]


@pytest.mark.parametrize(
    "given", ["", "no JSON", "[]", "{}", '{"token": 1}', '{"token": "\\u2603"}', '{"token": "a\\nb"}']
)
def test_refused_token_is_reported_with_the_way_to_log_in(registry, given):
    host, kind = registry
    kind.given = given
    said = find_image(f"{host}/a:1", credentials=None)
    assert said.startswith(f"{host} gives no token for it (")
    assert f"a private image needs: docker login {host}" in said


@pytest.mark.parametrize(
    "challenge",
    [
        "",
        "Negotiate",
        "Bearer",
        'Bearer realm="http://evil.example/token"',
        'Bearer realm="file:///etc/passwd"',
    ],
)
def test_token_is_fetched_over_https_or_here_and_nowhere_else(registry, challenge):
    host, kind = registry
    kind.challenge = challenge
    needs = f"a private image needs: docker login {host}, with the login kept in Docker's file"
    assert find_image(f"{host}/a:1", credentials=None) == f"{host} answers 401; {needs}"


@pytest.mark.parametrize(
    ("image", "login", "token", "words"),
    [
        (
            "ghcr.io/me/a:1",
            False,
            "",
            "a private image needs: docker login ghcr.io, with the login kept in Docker",
        ),
        (
            "ghcr.io/me/a:1",
            True,
            "",
            "the login in Docker's file may not read it: docker login ghcr.io, as some",
        ),
        ("me/a:1", False, "", "a private image needs: docker login, with the login kept in Docker's file"),
        ("me/a:1", True, "", "the login in Docker's file may not read it: docker login, as somebody who may"),
        ("gcr.io/p/a:1", True, "", "a private image needs: gcloud auth application-default login"),
        (
            "gcr.io/p/a:1",
            True,
            "T",
            "default login, and the role roles/artifactregistry.reader for that account",
        ),
    ],
)
@pytest.mark.parametrize("code", [401, 403])
def test_closed_registry_is_told_with_the_command_that_opens_it(
    tmp_path, monkeypatch, image, login, token, words, code
):
    """Whether or not there is a login; it is that of the registry's name in Docker's file."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    answer = requests.Response()
    answer.status_code = code
    monkeypatch.setattr(image_registry, "_ask", lambda *_: answer)
    if login:
        log_in(tmp_path, "ghcr.io" if image.startswith("ghcr") else "https://index.docker.io/v1/")
    credentials = SimpleNamespace(token=token) if token else None
    said = find_image(image, credentials=credentials)
    assert f" answers {code}; " in said
    assert words in said


@pytest.mark.parametrize(
    "kept", ["", "[]", "{}", '{"auths": {"HOST": {}}}', '{"auths": {"HOST": {"auth": "a\\nb"}}}']
)
def test_file_of_logins_that_holds_none_counts_as_none(registry, tmp_path, kept):
    host, kind = registry
    (tmp_path / "config.json").write_text(kept.replace("HOST", host))
    assert find_image(f"{host}/a:1", credentials=None) is True
    assert kind.seen[1][1] is None


def test_place_of_tokens_that_does_not_answer_is_named(registry):
    host, kind = registry
    kind.challenge = 'Basic realm="x", Bearer realm="http://127.0.0.1:1/token"'
    assert find_image(f"{host}/a:1", credentials=None) == (
        "127.0.0.1:1, which gives its tokens, does not answer (ConnectionError)"
    )


def test_registry_that_sends_a_byte_now_and_then_is_not_waited_for(registry, monkeypatch):
    host, kind = registry
    monkeypatch.setattr(image_registry, "_MOST_S", 0.3)

    def drip(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(20):
            handler.wfile.write(b" ")
            time.sleep(0.1)

    kind.do_GET = drip
    assert find_image(f"{host}/a:1", credentials=None) == f"{host} takes longer than 0.3 s to answer"


def test_logins_of_netrc_are_sent_nowhere(registry, tmp_path, monkeypatch):
    host, kind = registry
    file = tmp_path / "netrc"
    file.write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(file))
    assert find_image(f"{host}/a:1", credentials=None) is True
    assert [authorization for _, authorization in kind.seen] == [None, None, "Bearer T"]


@pytest.mark.parametrize("code", [200, 404])
def test_page_of_a_proxy_says_nothing_about_the_image(monkeypatch, code):
    answer = requests.Response()
    answer.status_code, answer.headers["Content-Type"] = code, "text/html; charset=utf-8"
    monkeypatch.setattr(image_registry, "_ask", lambda *_: answer)
    told = find_image("registry.example/slipway:1", credentials=None)
    assert told == f"registry.example answers with a page ({code}), as of a login, and not as a registry"


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"])
def test_host_that_no_name_server_takes_is_told(host):
    assert find_image(f"{host}/c:1", credentials=None) == f"{host} does not answer (LocationParseError)"
