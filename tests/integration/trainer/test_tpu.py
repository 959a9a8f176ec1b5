"""The way to a TPU with TensorFlow, against a double of what only a TPU has: the order of its calls.

The training itself is real, under TensorFlow's default strategy.
"""

import json
import subprocess
import sys
import textwrap

import pytest

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

DOUBLE = """
    import contextlib, json, sys
    import tensorflow as tf
    from components.trainer import train
    from components.trainer.devices import opening

    calls = []

    def noted(name, answer=None):
        def call(*args, **kwargs):
            calls.append(name if not kwargs else f"{name} {kwargs['tpu']}")
            return answer
        return call

    class Strategy:
        '''TensorFlow's default strategy, with the scope noted.'''
        def __init__(self, resolver):
            assert resolver == "the resolver"
            calls.append("strategy")
            self.own = tf.distribute.get_strategy()

        def __getattr__(self, name):
            return getattr(self.own, name)

        @contextlib.contextmanager
        def scope(self):
            calls.append("scope begins")
            with self.own.scope():
                yield
            calls.append("scope ends")

    tf.distribute.cluster_resolver.TPUClusterResolver = noted("resolver", "the resolver")
    tf.config.experimental_connect_to_cluster = noted("connect")
    tf.tpu.experimental.initialize_tpu_system = noted("initialise")
    tf.distribute.TPUStrategy = Strategy
    opening.count_tpu_cores = lambda backend, address: noted(f"first contact with {address}")()
    build_model = train.build_model

    def noted_build(*args):
        model = build_model(*args)
        calls.append(f"built under {model.layers[-1].dtype_policy.name}")
        return model

    train.build_model = noted_build
    code = train.main(sys.argv[1:])
    print("CALLS", json.dumps(calls))
    sys.exit(code)
"""


def run_against_the_double(job, tmp_path, monkeypatch, **environment):
    file = tmp_path / "job.json"
    file.write_text(job.to_json(), encoding="utf-8")
    for name, value in {"TF_USE_LEGACY_KERAS": "0", "PYTHONPATH": str(tmp_path), **environment}.items():
        monkeypatch.setenv(name, value, prepend=":" if name == "PYTHONPATH" else None)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DOUBLE), str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "CALLS" in done.stdout, done.stderr[-3000:]
    return done.returncode, done.stdout


def test_tpu_is_found_connected_initialised_and_the_model_built_in_its_scope(job, tmp_path, monkeypatch, tpu):
    code, output = run_against_the_double(tpu(job), tmp_path, monkeypatch, TPU_NAME="my-node")
    calls = json.loads(output.rpartition("CALLS")[2])
    assert calls == [
        "first contact with my-node",
        "resolver my-node",
        "connect",
        "initialise",
        "strategy",
        "built under mixed_bfloat16",  # on the CPU, to see whether a TPU can compute it
        "scope begins",
        "built under mixed_bfloat16",
        "scope ends",
    ]
    assert code == 0
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    [devices] = [event for event in events if event["event"] == "devices"]
    assert (devices["kind"], devices["words"]) == ("tpu", "1 TPU cores at my-node")
    assert events[-1]["event"] == "done"
    assert events[-1]["metrics"]["loss"] < 10


def test_model_that_no_tpu_computes_is_refused_before_training(job, tmp_path, monkeypatch, tpu):
    changed = tpu(job, hyperparameters={"python": True})
    code, output = run_against_the_double(changed, tmp_path, monkeypatch, TPU_NAME="local")
    assert code == 1
    assert "no TPU computes the layer 'printed' (Printed)" in output
    assert '"event": "start"' not in output
