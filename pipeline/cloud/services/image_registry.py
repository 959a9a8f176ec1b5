"""Looks up an image in its container registry."""

import re
from dataclasses import dataclass
from typing import Any

_TIMEOUT_S = 10.0
_DOCKER_HUB = "registry-1.docker.io"
_HOSTS_HERE = ("localhost", "127.0.0.1", "[::1]")
_GOOGLE = (".pkg.dev", ".gcr.io")
# The characters allowed in the parts of a name. Others, such as # or @, could lead to another host.
_HOST = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?")
_REPOSITORY = re.compile(r"[a-z0-9._/-]+")
_REFERENCE = re.compile(r"[A-Za-z0-9_.:+-]+")
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
        is_here = self.host.rsplit(":", 1)[0] in _HOSTS_HERE
        return f"http{'' if is_here else 's'}://{self.host}/v2/{self.repository}/manifests/{self.reference}"

    @property
    def takes_google_tokens(self) -> bool:
        """Whether Google runs the registry; no other registry is sent a token."""
        return self.host == "gcr.io" or self.host.endswith(_GOOGLE)


def find_image(name: str, *, credentials: Any) -> bool | str:
    """Return True if an image is in its registry, False if not, or a text that says why this is unknown.

    Args:
        credentials: google.auth credentials with a token; with None, no token is sent.
    """
    import requests

    image = ImageName.parse(name)
    if not image.is_sound:
        return f"{name!r} is not an image name: HOST/REPOSITORY:TAG"
    headers = {"Accept": ", ".join(_KINDS)}
    if image.takes_google_tokens and credentials is not None:
        headers["Authorization"] = f"Bearer {credentials.token}"
    try:
        status = requests.head(
            image.url, headers=headers, timeout=_TIMEOUT_S, allow_redirects=True
        ).status_code
    except requests.RequestException as error:
        return f"{image.host} does not answer ({type(error).__name__})"
    if status == 200:
        return True
    if status == 404:
        return False
    return f"{image.host} answers {status}"
