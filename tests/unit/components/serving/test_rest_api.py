"""Paths: those of TF Serving's REST API, and nothing else."""

import pytest

from slipway.components.serving.request_decoding import RequestError
from slipway.components.serving.rest_api import Route, route


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("GET", "/v1/models/taxi", Route("", None)),
        ("GET", "/v1/models/taxi?x=1", Route("", None)),
        ("GET", "/v1/models/taxi/metadata", Route("/metadata", None)),
        ("GET", "/v1/models/taxi/versions/7/metadata", Route("/metadata", 7)),
        ("POST", "/v1/models/taxi:predict", Route(":predict", None)),
        ("POST", "/v1/models/taxi/versions/7:predict", Route(":predict", 7)),
    ],
)
def test_path_says_what_to_do(method, path, found):
    assert route(method, path, name="taxi") == found


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "*",
        "/v1/models/",
        "/v1/models/taxi/",
        "/v1/models/../taxi",
        "/v1/models/taxi/../../etc/passwd",
        "/v1/models/%74axi",
        "/v1/models/taxi%2f..%2f..",
        "/v1/models/taxi%252e%252e",
        "/v1/models/taxi\\..\\x",
        "/v1/models//taxi",
        "//v1/models/taxi",
        "/v1/models/taxi/versions/-1",
        "/v1/models/taxi/versions/\uff11",
        "/v1/models/taxi/versions/1/../2",
        "/v1/models/taxi/versions/" + "9" * 5000,
        "/v1/models/taxi\x00",
        "/v1/models/taxi\n",
        "/v1/models/" + "a" * 100_000,
        "file:///etc/passwd",
        "http://127.0.0.1/v1/models/taxi",
        "/v1/models/taxi/labels/stable",
        "/v1/models/taxi:classify",
        "/v1/models/other",
        "/v1/models/TAXI",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_anything_else_is_not_found(method, path):
    with pytest.raises(RequestError) as raised:
        route(method, path, name="taxi")
    assert raised.value.status == 404
    assert len(str(raised.value)) < 300


def test_wrong_method_for_a_path_is_reported():
    with pytest.raises(RequestError, match="use POST") as raised:
        route("GET", "/v1/models/taxi:predict", name="taxi")
    assert raised.value.status == 405
