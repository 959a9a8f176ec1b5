"""A training on real files that takes a moment; in the second environment, one that imports little."""

import json
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from small_job import small_job
from warm_jax import warm_jax

from slipway.components.event_lines import read_event
from slipway.components.python_process import ForkedProcess
from slipway.components.trainer import launch
from slipway.components.trainer.features import Feature
from slipway.components.trainer.launch import TrainingProcess
from slipway.components.trainer.settings.compute import ComputeSettings

MODEL = """
    import os

    import keras

    class Printed(keras.layers.Layer):
        def call(self, values):
            import tensorflow as tf

            return tf.ensure_shape(tf.py_function(lambda each: each, [values], tf.float32), values.shape)

    def build_model(features, hyperparameters):
        inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
        hidden = keras.layers.Dense(32, activation="relu", name="wide")(inputs["x"])
        if hyperparameters.get("normalised"):
            hidden = keras.layers.BatchNormalization(name="norm")(hidden)
        if hyperparameters.get("python"):
            hidden = Printed(name="printed", dtype="float32")(hidden)
        model = keras.Model(inputs, keras.layers.Dense(1, name="head")(hidden))
        if os.environ.get("KERAS_DISTRIBUTION_PROCESS_ID") in hyperparameters.get("failing_hosts", ()):
            raise ValueError("no model on this host")
        model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
        return model
"""
ROWS = 240


@pytest.fixture
def job(tmp_path):
    """240 rows in four files of 16 numbers and their sum; and a model in a module beside them."""
    import tensorflow as tf

    random = np.random.default_rng(5)
    files = []
    for number in range(4):
        files.append(str(tmp_path / f"rows-{number}.gz"))
        with tf.io.TFRecordWriter(files[-1], "GZIP") as writer:
            for x in random.normal(size=(ROWS // 4, 16)):
                example = tf.train.Example()
                example.features.feature["x"].float_list.value.extend(x)
                example.features.feature["y"].float_list.value.append(x.sum())
                writer.write(example.SerializeToString())
    (tmp_path / "tiny_model.py").write_text(textwrap.dedent(MODEL))
    return small_job(
        train_files=tuple(files),
        eval_files=tuple(files),
        features=(Feature(name="x", dtype="float32", shape=(16,)), Feature(name="y", dtype="float32")),
        model="tiny_model.build_model",
        batch_size=48,
        epochs=4,
        seed=3,
        output_dir=str(tmp_path),
    )


@pytest.fixture(scope="session")
def jax_line(jax_python):
    """The line to the process that trainings on JAX are forked from, see warm_jax.py."""
    with warm_jax(jax_python) as line:
        yield line


@pytest.fixture
def jax_forked(jax_line, jax_python, monkeypatch):
    """The path of the second environment's Python, whose trainings are forked: each saves 7 s of imports."""
    start = launch.start_module

    def forked(module, arguments, *, environment, interpreter=None, **more):
        if interpreter == jax_python:
            return ForkedProcess(jax_line, module, arguments, environment)
        return start(module, arguments, environment=environment, interpreter=interpreter, **more)

    monkeypatch.setattr(launch, "start_module", forked)
    return jax_python


@pytest.fixture
def tpu():
    """A job changed to train on a TPU."""

    def change(job, **changes):
        return replace(job, compute=ComputeSettings(device="tpu"), **changes)

    return change


@pytest.fixture
def train(job, tmp_path):
    """Carries out the job with some settings changed; returns its result, its events and its weights."""
    import h5py

    def call(*, interpreter=None, environment=None, **changes):
        changed = replace(job, **changes)
        file = tmp_path / "job.json"
        file.write_text(changed.to_json(), encoding="utf-8")
        lines = []
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (environment or {}).items():
                patch.setenv(name, value)
            with TrainingProcess(
                file, import_roots=[tmp_path], compute=changed.compute, interpreter=interpreter
            ) as process:
                result = process.wait(show=lines.append)
        weights = {}
        with h5py.File(tmp_path / "model.weights.h5") as stored:
            stored.visititems(lambda name, item: weights.update({name: item}))
            weights = {name: item[()] for name, item in weights.items() if hasattr(item, "shape")}
        history = json.loads((tmp_path / "history.json").read_text())["epochs"]
        events = [event for line in lines if (event := read_event(line))]
        return {"result": result, "events": events, "weights": weights, "history": history}

    return call
