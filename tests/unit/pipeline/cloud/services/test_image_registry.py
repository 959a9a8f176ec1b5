"""Names of container images, and who is shown a token."""

import pytest

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
    import requests

    monkeypatch.setattr(requests, "head", None)  # called, it would fail
    assert not ImageName.parse(name).is_sound
    assert "is not an image name" in find_image(name, credentials=None)
