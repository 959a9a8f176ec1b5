"""The way to a TPU, against doubles of what only a TPU has; the training itself is real.

With TensorFlow it is the order of the calls, under the default strategy; with JAX a CPU cut into cores.
"""

import json
import os
import subprocess
import textwrap
from dataclasses import replace

import pytest

from slipway.components import python_process
from slipway.components.trainer.settings.compute import ComputeSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("forked"),
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

DOUBLE = """
    import contextlib, json
    import tensorflow as tf
    from slipway.components.trainer import train
    from slipway.components.trainer.devices import opening

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

    def noted_build(*args, **named):
        model = build_model(*args, **named)
        calls.append(f"built under {model.layers[-1].dtype_policy.name}")
        return model

    train.build_model = noted_build

    def main(arguments):
        code = train.main(arguments)
        print("CALLS", json.dumps(calls), flush=True)
        return code
"""


ON_JAX = """
    import jax, keras
    from slipway.components.trainer.devices.tpu_model import require_tpu_model
    from slipway.components.trainer.features import Feature
    from slipway.components.trainer.models import cnn, residual, wide_and_deep

    class Longer(keras.layers.Layer):
        def call(self, values):
            return values + jax.numpy.zeros(values.max().astype(int)).sum()

        def compute_output_shape(self, shape):
            return shape

    image = {"image": Feature(name="image", dtype="uint8", shape=(12, 12, 1))}
    table = {
        "fare": Feature(name="fare", dtype="float32"),
        "hour": Feature(name="hour", dtype="int64", categories=24),
        "company": Feature(name="company", dtype="int64", categories=1000),
    }
    for shipped, features in ((cnn, image), (residual, image), (wide_and_deep, table)):
        require_tpu_model(shipped.build_model(features, {}), batch_size=8)
    given = keras.Input((4,))
    words = keras.Input((None, 4), name="words")
    for model in (
        keras.Model(given, keras.layers.Dense(1)(Longer(name="longer", dtype="float32")(given))),
        keras.Model(words, keras.layers.LSTM(3)(words)),
    ):
        try:
            require_tpu_model(model, batch_size=8)
        except Exception as error:
            print(error.message)
"""


DOUBLE_ON_JAX = """
    import os, sys
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    from slipway.components.trainer import train
    from slipway.components.trainer.devices import opening, with_jax

    with_jax._PLATFORMS["tpu"] = with_jax._JAX_KINDS["tpu"] = "cpu"  # four cores of a TPU are these
    opening.count_tpu_cores = lambda backend, address: print(f"first contact of {backend} with {address}")
    sys.exit(train.main(sys.argv[1:]))
"""


def environment(tmp_path, **variables):
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "TF_USE_LEGACY_KERAS": "0", "PYTHONPATH": path, **variables}


def job_file(job, tmp_path):
    (tmp_path / "job.json").write_text(job.to_json(), encoding="utf-8")
    return str(tmp_path / "job.json")


def run_against_the_double(job, tmp_path, **variables):
    """In a process forked from the warm one, as trainings are in a run."""
    (tmp_path / "tpu_double.py").write_text(textwrap.dedent(DOUBLE), encoding="utf-8")
    process = python_process.start_module(
        "tpu_double",
        [job_file(job, tmp_path)],
        environment=environment(tmp_path, **variables),
        may_fork=True,
    )
    with process.stdout as told:
        output = told.read()
    code = process.wait()
    assert "CALLS" in output, output
    return code, output


def test_tpu_is_found_connected_initialised_and_the_model_built_in_its_scope(job, tmp_path, tpu):
    code, output = run_against_the_double(tpu(job), tmp_path, TPU_NAME="my-node")
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


def test_what_padding_wastes_on_a_tpu_is_reported_before_the_first_step(job, tmp_path, tpu):
    _, output = run_against_the_double(tpu(job, batch_size=50), tmp_path, TPU_NAME="local")
    advice = "50 examples a core are padded to 56, up to 11% of the work on them in vain"
    assert advice in output.partition('"event": "start"')[0]


def test_model_that_no_tpu_computes_is_refused_before_training(job, tmp_path, tpu):
    changed = tpu(job, hyperparameters={"python": True})
    code, output = run_against_the_double(changed, tmp_path, TPU_NAME="local")
    assert code == 1
    assert "a TPU cannot compute the layer 'printed' (Printed)" in output
    assert '"event": "start"' not in output


def test_tpu_with_jax_takes_all_its_cores_in_bfloat16_and_tells_what_padding_wastes(
    job, tmp_path, jax_python, project
):
    compute = ComputeSettings(device="tpu", backend="jax")
    done = subprocess.run(
        [jax_python, "-c", textwrap.dedent(DOUBLE_ON_JAX), job_file(replace(job, compute=compute), tmp_path)],
        env=environment(tmp_path, KERAS_BACKEND="jax", TPU_NAME="local", PYTHONPATH=f"{tmp_path}:{project}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "first contact of jax with local" in done.stdout
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert (events[0]["kind"], events[0]["replicas"]) == ("tpu", 4)
    told = [event["message"] for event in events if event["event"] == "note"]
    assert [each.partition(" of the work")[0] for each in told] == [
        "12 examples a core are padded to 16, up to 25%"
    ]
    assert told[0].endswith("; best is train.batch_size 64")
    assert events[-1]["event"] == "done"
    assert events[-1]["metrics"]["loss"] < 10


def test_models_that_come_along_pass_on_jax_and_a_shape_that_depends_on_values_does_not(jax_python, project):
    done = subprocess.run(
        [jax_python, "-c", textwrap.dedent(ON_JAX)], env={**os.environ, "KERAS_BACKEND": "jax"},
        cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    longer, words = done.stdout.splitlines()
    assert longer.startswith("a TPU cannot compute the layer 'longer' (Longer): XLA does not compile it")
    assert words.startswith(
        "a TPU cannot compute the layer 'words' (InputLayer): only the batch may be unknown"
    )
