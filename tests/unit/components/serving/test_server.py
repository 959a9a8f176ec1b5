"""What the server logs of the requests that it answers, and the names in its answers: only sockets."""

import contextlib
import http.client
import json
import socket

import loopback
import numpy as np
import pytest

from slipway.components.saved_model.signatures import Signature, TensorInfo
from slipway.components.serving.connection_limit import Places
from slipway.components.serving.live_model import Served
from slipway.components.serving.server import ModelServer

EXAMPLES = {"examples": TensorInfo("string", (None,))}
FEATURES = {"fare_scaled": TensorInfo("float", (None, 1))}


SIGNATURES = {
    "serving_default": Signature(EXAMPLES, {"outputs": TensorInfo("float", (None, 1))}),
    "transform_features": Signature(EXAMPLES, FEATURES),
}


class _Model:
    signatures = SIGNATURES

    def call(self, name, inputs):
        rows = len(inputs["examples"])
        return {output: np.zeros([rows, 1]) for output in self.signatures[name].outputs}


class _Live:
    served = Served(7, _Model(), {"": ("no", "yes")}, needed=("city",))


class _Log(list):
    def add(self, version, inputs, outputs, *, name, needed):
        self.append((version, sorted(outputs), len(next(iter(inputs.values()))), name, *needed))


@contextlib.contextmanager
def serving(live):
    server = ModelServer(name="toy", host="127.0.0.1", port=0, log=_Log())
    server.live = live
    with loopback.running(server):
        yield server


@pytest.fixture
def answer_and_log():
    """Sends a prediction request, and gives the answer and what is logged by then."""
    with serving(_Live()) as server:

        def call(**more):
            client = http.client.HTTPConnection(*server.server_address)
            body = json.dumps({"instances": [{"b64": ""}] * 2, **more})
            client.request("POST", "/v1/models/toy:predict", body, {"X-Request-Id": "trip"})
            answer = client.getresponse()
            assert answer.status == 200
            found = json.loads(answer.read())
            client.close()
            return found, server.log

        yield call


def test_answers_are_logged_and_transformed_columns_are_not_taken_for_answers(answer_and_log):
    transformed, _ = answer_and_log(signature_name="transform_features")
    answer, log = answer_and_log()
    assert log == [(7, ["outputs"], 2, "trip", "city")]
    # The only feature of a model is not the probability of a class.
    assert (transformed.get("classes"), answer["classes"]) == (None, ["no", "no"])


DAYS = {"serve_raw": Signature({"day": TensorInfo("string", (None, 1))}, FEATURES)}


class _Days(_Model):
    signatures = DAYS

    def call(self, name, inputs):
        return {"fare_scaled": np.zeros([len(inputs["day"]), 1])}


class _LiveDays:
    served = Served(7, _Days(), dates={"day"})


def test_dates_are_those_of_the_version_that_answers():
    with serving(_LiveDays()) as server:
        client = http.client.HTTPConnection(*server.server_address)
        found = []
        for day in ("2024-01-31", "31.01.2024"):
            body = json.dumps({"signature_name": "serve_raw", "instances": [{"day": [day]}]})
            client.request("POST", "/v1/models/toy:predict", body)
            answer = client.getresponse()
            found.append((answer.status, json.loads(answer.read()).get("error", "")[:30]))
        client.close()
    assert found == [(200, ""), (400, "Input 'day' holds '31.01.2024'")]


class _Wide(_Model):
    def call(self, name, inputs):
        return {"outputs": np.zeros([1, 6_000_000], bool)}


class _LiveWide:
    served = Served(7, _Wide())


def test_client_that_does_not_take_its_answer_gives_way():
    with serving(_LiveWide()) as server:
        server.places = Places(1)
        request = b'{"instances": [{"b64": ""}]}'
        head = b"POST /v1/models/toy:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        with socket.create_connection(server.server_address) as slow:
            slow.sendall(head % len(request) + request)
            assert slow.recv(8) == b"HTTP/1.1"
            other = http.client.HTTPConnection(*server.server_address)
            other.request("GET", "/v1/models/toy")
            assert other.getresponse().status == 200
            other.close()
