"""Checkpoints in object stores: a training that is told to end, then killed, goes on from gs://, s3:// and az://.

External: kills at any step, on a disk, are in test_trainer_process.py; the same calls reach a store in
tests/unit/components/trainer/test_checkpoint_storage.py.
Seen only here: that a training's own process finds the store, with the real clients.
"""

import os
import signal
from dataclasses import replace

import pytest

from slipway.components.errors import ComponentError
from slipway.components.event_lines import read_event
from slipway.components.trainer.checkpoint_storage import storage
from slipway.components.trainer.launch import TrainingProcess
from slipway.components.trainer.result import TrainingPreemptedError
from slipway.components.trainer.settings.checkpoint import CheckpointSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    pytest.mark.usefixtures("forked"),
    pytest.mark.filterwarnings("default"),
]

MODEL = """
import keras
import tensorflow as tf

def build_model(features, hyperparameters):
    tf.config.experimental.enable_op_determinism()
    inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
    hidden = keras.layers.Dropout(0.3)(keras.layers.Dense(8, activation="relu")(inputs["x"]))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    return model
"""


def end_it(folder, *, signum, epoch):
    """Sends the signal once that epoch has been told; returns the error that this leads to."""

    def show(line):
        event = read_event(line) or {}
        if event.get("event") == "epoch" and event["epoch"] == epoch:
            os.kill(process.pid, signum)

    process = TrainingProcess(folder / "job.json", import_roots=[folder])
    with process, pytest.raises(ComponentError) as ended:
        process.wait(show=show)
    return ended.value


@pytest.fixture(params=["gs", "s3", "az"])
def bucket(request, monkeypatch):
    """A bucket's address, with the variables that lead there."""
    if request.param == "gs":
        address, variables = "gs://bucket", request.getfixturevalue("gs")
    else:
        server = request.getfixturevalue({"s3": "s3_server", "az": "azure_server"}[request.param])
        address, variables = server.make_bucket(), server.variables
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return address


def test_killed_and_told_to_end_it_goes_on_from_the_store_to_the_same_bits(job, train, bucket, tmp_path):
    (tmp_path / "stateful_model.py").write_text(MODEL)
    changes = {
        "model": "stateful_model.build_model",
        "batch_size": 8,
        "epochs": 12,
        "checkpoint": CheckpointSettings(steps=10),
    }
    undisturbed = train(**changes)
    there = f"{bucket}/kept/one-training"
    disturbed = replace(job, **changes, checkpoint_dir=there)
    (tmp_path / "job.json").write_text(disturbed.to_json(), encoding="utf-8")

    told = end_it(tmp_path, signum=signal.SIGTERM, epoch=2)
    assert isinstance(told, TrainingPreemptedError)
    kept = {f"step-{told.step:09d}.{kind}" for kind in ("json", "npz")}
    assert kept <= set(storage(there).names())
    assert "SIGKILL" in end_it(tmp_path, signum=signal.SIGKILL, epoch=7).message

    resumed = train(**changes, checkpoint_dir=there)
    [again] = [event for event in resumed["events"] if event["event"] == "resumed"]
    assert again["step"] > told.step
    assert resumed["result"]["time"]["restarts"] == 2
    assert resumed["history"] == undisturbed["history"]
    assert resumed["weights"].keys() == undisturbed["weights"].keys()
    for name, values in undisturbed["weights"].items():
        assert values.tobytes() == resumed["weights"][name].tobytes(), name
    names = [name for name in storage(there).names() if name.endswith(".npz")]
    assert len(names) <= 3  # the two newest, and the best
