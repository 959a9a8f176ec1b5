"""Looks up an image in its container registry, as `docker pull` would.

The protocol is the OCI distribution specification's. A registry that wants a token (Docker Hub, GHCR) says
where to get one: `WWW-Authenticate: Bearer realm="URL",service="NAME",scope="repository:NAME:pull"`, which
is the token authentication of the CNCF distribution project. For a public image everybody gets one, for a
private one only those who have logged in.
"""

import base64
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slipway.components.time_limit import LateError, within

if TYPE_CHECKING:
    from requests import Response

_TIMEOUT_S, _MOST_S = 10.0, 60.0
"""How long a registry may take for the next bytes of an answer, and for all of its answers."""
_DOCKER_HUB = "registry-1.docker.io"
_DOCKER_HUB_TOO = ("docker.io", "index.docker.io")
_LOGINS = {_DOCKER_HUB: "https://index.docker.io/v1/"}
"""The names that `docker login` gives to hosts, where they are not the hosts' own."""
_HOSTS_HERE = ("localhost", "127.0.0.1", "[::1]")
_GOOGLE = (".pkg.dev", ".gcr.io")
# The characters allowed in the parts of a name. Others, such as # or @, could lead to another host.
_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?")
_REPOSITORY = re.compile(r"[a-z0-9._/-]+")
_REFERENCE = re.compile(r"[A-Za-z0-9_.:+-]+")
_BEARER = re.compile(r"\bbearer\s+(.*)", re.IGNORECASE)  # a registry may offer others before it
_TOKEN = re.compile(r"[!-~]+")  # what fits into a header
_KINDS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)


@dataclass(frozen=True)
class ImageName:
    """The parts of an image's name.

    Attributes:
        host: the registry's host name, with the port if there is one.
        reference: a tag or a digest.
    """

    host: str
    repository: str
    reference: str

    @classmethod
    def parse(cls, name: str) -> "ImageName":
        """Parse a name as Docker does: without a host it is on Docker Hub, without a tag it is `latest`."""
        first, slash, rest = name.partition("/")
        is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
        host, path = (first, rest) if is_host else (_DOCKER_HUB, name)
        host = _DOCKER_HUB if host in _DOCKER_HUB_TOO else host
        path, _, digest = path.partition("@")
        repository, colon, tag = path.rpartition(":")
        if not colon:
            repository, tag = path, "latest"
        if host == _DOCKER_HUB and "/" not in repository:
            repository = f"library/{repository}"
        return cls(host, repository, digest or tag)

    @property
    def is_sound(self) -> bool:
        """Whether all parts are valid, so that `url` leads to the named host."""
        return bool(
            _HOST.fullmatch(self.host)
            and _REPOSITORY.fullmatch(self.repository)
            and _REFERENCE.fullmatch(self.reference)
        )

    @property
    def url(self) -> str:
        """The address of the manifest; plain HTTP if the registry is on this machine, as with Docker."""
        plain = "" if _is_here(self.host) else "s"
        return f"http{plain}://{self.host}/v2/{self.repository}/manifests/{self.reference}"

    @property
    def takes_google_tokens(self) -> bool:
        """Whether Google runs the registry; no other registry is sent Google's tokens."""
        return self.host == "gcr.io" or self.host.endswith(_GOOGLE)


def find_image(name: str, *, credentials: Any) -> bool | str:
    """Return True if an image is in its registry, False if not, or a text that says why this is unknown.

    Args:
        credentials: google.auth credentials with a token, for Google's registries; None for none.
    """
    image = ImageName.parse(name)
    if not image.is_sound:
        return f"{name!r} is not an image name: HOST/REPOSITORY:TAG"
    try:
        return within(_MOST_S, lambda: _found(image, credentials))
    except LateError:  # it sends a byte now and then
        return f"{image.host} takes longer than {_MOST_S:g} s to answer"


def _found(image: ImageName, credentials: Any) -> bool | str:
    import requests
    from urllib3.exceptions import HTTPError

    token = credentials.token if image.takes_google_tokens and credentials is not None else None
    try:
        answer = _ask(image, f"Bearer {token}" if token else None)
        if answer.status_code == requests.codes.unauthorized and not token:
            authorization = _authorization(image, answer.headers.get("WWW-Authenticate", ""))
            answer = _ask(image, authorization) if authorization else answer
    except _NoTokenError as error:
        return str(error)
    except (requests.RequestException, HTTPError) as error:  # of a host like "a..b", requests tells urllib3's
        return f"{image.host} does not answer ({type(error).__name__})"
    is_answer = answer.status_code in (requests.codes.ok, requests.codes.not_found)
    if is_answer and answer.headers.get("Content-Type", "").startswith("text/html"):
        return (
            f"{image.host} answers with a page ({answer.status_code}), as of a login, and not as a registry"
        )
    if answer.status_code == requests.codes.ok:
        return True
    if answer.status_code == requests.codes.not_found:
        return False
    said = f"{image.host} answers {answer.status_code}"
    is_closed = answer.status_code in (requests.codes.unauthorized, requests.codes.forbidden)
    return f"{said}; {_remedy(image, is_known=bool(token))}" if is_closed else said


def _remedy(image: ImageName, *, is_known: bool = False) -> str:
    """Return what gives this machine access to a private image, with the command to type.

    Args:
        is_known: whether the registry was sent a token of Google's.
    """
    if image.takes_google_tokens:
        role = ", and the role roles/artifactregistry.reader for that account" if is_known else ""
        return f"a private image needs: gcloud auth application-default login{role}"
    # Docker keeps the login of its own registry under another name than the registry's.
    command = "docker login" if image.host == _DOCKER_HUB else f"docker login {image.host}"
    if _login(image.host):
        return f"the login in Docker's file may not read it: {command}, as somebody who may"
    return f"a private image needs: {command}, with the login kept in Docker's file"


class _NoTokenError(Exception):
    """Says why a registry's token could not be had."""


def _ask(image: ImageName, authorization: str | None) -> "Response":
    from slipway.components.http_session import PlainSession, sends

    with PlainSession() as session:
        return session.head(
            image.url,
            headers={"Accept": ", ".join(_KINDS)},
            auth=sends(authorization),
            timeout=_TIMEOUT_S,
            allow_redirects=True,
        )


def _authorization(image: ImageName, challenge: str) -> str | None:
    """Return the header that answers a registry's challenge; None if there is no answer to it.

    Raises:
        _NoTokenError: the place that the challenge names gives no token.
    """
    import requests
    from urllib3.exceptions import HTTPError

    from slipway.components.http_session import PlainSession, sends

    bearer = _BEARER.search(challenge)
    if bearer is None:
        return _login(image.host) if challenge.lower().startswith("basic") else None
    wanted = requests.utils.parse_dict_header(bearer[1])
    address = wanted.get("realm") or ""
    realm = _private_host(address, registry=image.host)
    if realm is None:
        return None
    login = _login(image.host)
    try:
        with PlainSession() as session:
            answer = session.get(
                address,
                params={key: wanted[key] for key in ("service", "scope") if key in wanted},
                auth=sends(login),
                timeout=_TIMEOUT_S,
            )
        given = answer.json() if answer.ok else {}
    except requests.JSONDecodeError:
        given = {}
    except (requests.RequestException, HTTPError) as error:
        raise _NoTokenError(
            f"{realm}, which gives its tokens, does not answer ({type(error).__name__})"
        ) from error
    found = given.get("token") or given.get("access_token") if isinstance(given, dict) else None
    if not isinstance(found, str) or not _TOKEN.fullmatch(found):
        raise _NoTokenError(f"{realm} gives no token for it ({answer.status_code}); {_remedy(image)}")
    return f"Bearer {found}"


def _private_host(address: str, *, registry: str) -> str | None:
    """Return the host that an address leads to; None if others could read what is sent there.

    Args:
        registry: the host that gave the address; one on this machine may name another there.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    is_private = parts.scheme == "https" or (
        parts.scheme == "http" and _is_here(registry) and _is_here(parts.netloc)
    )
    return parts.netloc if is_private and _HOST.fullmatch(parts.netloc) else None


def _login(host: str) -> str | None:
    """Return the header of the login that `docker login` wrote into its file; None if there is none.

    Logins that Docker keeps in a program of the system's (`credsStore`) are not in the file.
    """
    try:
        folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
        logins = json.loads((folder / "config.json").read_text(encoding="utf-8"))["auths"]
        kept = logins[_LOGINS.get(host, host)]["auth"]
        base64.b64decode(kept, validate=True)
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None
    return f"Basic {kept}" if kept else None


def _is_here(host: str) -> bool:
    return host.rsplit(":", 1)[0] in _HOSTS_HERE
