"""A small model with the signatures of ours, published; and a server of it."""

import http.client
import json
import threading

import pytest

from slipway.components.pusher.publish_to_folder import publish
from slipway.components.pusher.version_files import NO_EXTRAS
from slipway.components.pusher.version_store import version_store_at


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory):
    """Makes a SavedModel whose answer to a row is fare * factor; fare is needed, company may be empty.

    With `heads` it answers that as `cost`, and as `payment` the probabilities of three classes: below a fare
    of 1 the first is the most probable, above it the last. With `lists` its columns are the lists `tags` and
    `prices`, and its answer to a row the sum of the prices and the number of tags, times the factor.
    """
    from slipway.components.saved_model.quiet_tensorflow import import_tensorflow

    tf = import_tensorflow()
    from slipway.components.trainer.lists import until_last

    made = {}

    class Linear(tf.Module):
        def __init__(self, factor, heads):
            super().__init__()
            self.factor, self.heads = tf.Variable(float(factor)), heads

        def answers(self, fare):
            cost = fare * self.factor
            if not self.heads:
                return {"outputs": cost}
            return {"cost": cost, "payment": tf.nn.softmax(tf.concat([2 - fare, fare * 0 + 1, fare], axis=1))}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def serving_default(self, examples):
            spec = {"fare": tf.io.FixedLenFeature([1], tf.float32), "company": tf.io.VarLenFeature(tf.string)}
            return self.answers(tf.io.parse_example(examples, spec)["fare"])

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, 1], tf.float32, name="fare"),
                tf.TensorSpec([None, 1], tf.string, name="company"),
            ]
        )
        def serve_raw(self, fare, company):
            return self.answers(fare + 0.0 * tf.cast(tf.strings.length(company), tf.float32))

    class OfLists(tf.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = tf.Variable(float(factor))

        def answers(self, tags, prices):
            total = tf.reduce_sum(prices, axis=1) + tf.cast(tags.row_lengths(), tf.float32)
            return {"outputs": total[:, tf.newaxis] * self.factor}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def serving_default(self, examples):
            spec = {"tags": tf.io.RaggedFeature(tf.string), "prices": tf.io.RaggedFeature(tf.float32)}
            return self.answers(**tf.io.parse_example(examples, spec))

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None], tf.string, name="tags"),
                tf.TensorSpec([None, None], tf.float32, name="prices"),
            ]
        )
        def serve_raw(self, tags, prices):
            return self.answers(
                tf.ragged.boolean_mask(tags, until_last(tags != "")),
                tf.ragged.boolean_mask(prices, until_last(~tf.math.is_nan(prices))),
            )

    def make(factor, *, heads=False, lists=False):
        name = f"{factor}{'-heads' * heads}{'-lists' * lists}"
        if name not in made:
            folder = tmp_path_factory.mktemp("model") / name
            module = OfLists(factor) if lists else Linear(factor, heads)
            signatures = {"serving_default": module.serving_default, "serve_raw": module.serve_raw}
            tf.saved_model.save(module, str(folder), signatures=signatures)
            made[name] = folder
        return made[name]

    return make


@pytest.fixture
def base(tmp_path):
    return tmp_path / "output/serving/toy"


@pytest.fixture
def pushed(saved_model, base):
    """Pushes the model with that factor, with two outputs if `heads`, of lists if `lists`; its version."""
    provenance = {
        "workload": "toy",
        "schema": {
            "columns": {"fare": "FLOAT", "company": "BYTES", "tips": "FLOAT"},
            "needed": ["fare"],
        },
    }
    return lambda factor, extras=NO_EXTRAS, heads=False, lists=False, **more: publish(
        saved_model(factor, heads=heads, lists=lists),
        base=base,
        provenance={**provenance, **more},
        extras=extras,
    )


class Client:
    """Talks to a server; gives the status and the parsed answer."""

    def __init__(self, server):
        self.port = server.server_address[1]
        self.server = server

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            data = json.dumps(body).encode() if body is not None and not isinstance(body, bytes) else body
            if data is not None and "Content_Length" not in headers:
                connection.putheader("Content-Length", str(len(data)))
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders(data)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        finally:
            connection.close()

    def predict(self, fare=2.0):
        row = {"fare": [fare], "company": [""]}
        return self.ask("POST", "/v1/models/toy:predict", {"signature_name": "serve_raw", "instances": [row]})


@pytest.fixture
def serve(base, monkeypatch):
    """Starts a server of what is pushed; returns a client."""
    from slipway.components.serving import live_model
    from slipway.components.serving.live_model import LiveModel
    from slipway.components.serving.server import ModelServer

    monkeypatch.setattr(live_model, "POLL_S", 0.05)
    started, told = [], []

    def start(**options):
        live = LiveModel(version_store_at(str(base)), tell=told.append)
        server = ModelServer(name="toy", host="127.0.0.1", port=0, **options)
        server.live = live
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        started.append((server, thread))
        client = Client(server)
        client.told = told
        return client

    yield start
    for server, thread in started:
        server.shutdown()
        thread.join()
        server.live.close()
        server.server_close()
