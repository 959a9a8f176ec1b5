"""A training on JAX goes on, after SIGTERM and kill -9, to the bits of an undisturbed one."""

import os
import random
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.launch import TrainingProcess
from slipway.components.trainer.result import TrainingPreemptedError
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.step import StepSettings

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

MODEL = """
import keras

def build_model(features, hyperparameters):
    inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
    hidden = keras.layers.Dense(8, activation="relu")(inputs["x"])
    hidden = keras.layers.Dropout(0.3)(keras.layers.BatchNormalization()(hidden))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    return model
"""


def test_killed_and_told_to_end_it_comes_to_the_same(job, train, jax_forked, tmp_path):
    (tmp_path / "stateful_model.py").write_text(MODEL)
    kept = tmp_path / "kept"
    kept.mkdir()
    changes = {
        "model": "stateful_model.build_model",
        "batch_size": 8,
        "epochs": 10,
        "eval_files": (),
        "compute": ComputeSettings(backend="jax"),
        "checkpoint": CheckpointSettings(steps=4),
    }
    undisturbed = train(interpreter=jax_forked, **changes)
    disturbed = replace(job, **changes, checkpoint_dir=str(kept))
    (tmp_path / "job.json").write_text(disturbed.to_json(), encoding="utf-8")
    left_at = 0
    for signum in (signal.SIGTERM, signal.SIGKILL):
        step = left_at + random.randint(1, 60)  # noqa: S311
        print(signum, "after step", step)
        left_at = _end_it(tmp_path, jax_forked, kept, signum=signum, step=step)
        assert left_at >= step
    resumed = train(interpreter=jax_forked, **changes, checkpoint_dir=str(kept))
    assert [event["step"] for event in resumed["events"] if event["event"] == "resumed"] == [left_at]
    assert resumed["history"] == undisturbed["history"]
    assert resumed["weights"].keys() == undisturbed["weights"].keys()
    for name, values in undisturbed["weights"].items():
        assert values.tobytes() == resumed["weights"][name].tobytes(), name


OWN_LOOP = """
import os
import signal

def fit(model, data, context):
    for batch in data:
        if context.step == context.hyperparameters["told_to_end"] and not context.first_step:
            os.kill(os.getpid(), signal.SIGTERM)
        context.step_done(model.train_on_batch(*batch, return_dict=True)["loss"])
"""
ACCUMULATED = """
import os
import signal

class ToldToEnd(keras.callbacks.Callback):
    steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        if self.steps == self.at:
            os.kill(os.getpid(), signal.SIGTERM)

def callbacks(context):
    told = ToldToEnd()
    told.at = 0 if context.first_step else context.hyperparameters["told_to_end"]
    return [told]
"""


TOLD_TO_END = 38
"""The step, in the second of three epochs of 30; of four gradients two are added up."""


@pytest.mark.parametrize(
    ("code", "step", "left_at"),
    [
        pytest.param(OWN_LOOP, StepSettings(), TOLD_TO_END + 1, id="a loop of the user's own"),
        pytest.param(
            ACCUMULATED,
            StepSettings(accumulate_steps=4, precision="mixed_bfloat16", steps_per_execution=1),
            TOLD_TO_END,
            id="accumulated gradients in bfloat16",
        ),
    ],
)
def test_told_to_end_within_an_epoch_it_goes_on_to_the_checkpoints_of_an_undisturbed_one(
    train, jax_forked, tmp_path, code, step, left_at
):
    (tmp_path / "stateful_model.py").write_text(MODEL + code)
    changes = {
        "model": "stateful_model.build_model",
        "batch_size": 8,
        "epochs": 3,
        "step": step,
        "compute": ComputeSettings(backend="jax"),
        "checkpoint": CheckpointSettings(steps=7),
    }

    def trained(kept, *, told_to_end):
        kept.mkdir(exist_ok=True)
        asked = {"checkpoint_dir": str(kept), "hyperparameters": {"told_to_end": told_to_end}}
        return train(interpreter=jax_forked, **changes, **asked)

    undisturbed = trained(tmp_path / "undisturbed", told_to_end=-1)
    with pytest.raises(TrainingPreemptedError) as ended:
        trained(tmp_path / "disturbed", told_to_end=TOLD_TO_END)
    assert ended.value.step == left_at
    resumed = trained(tmp_path / "disturbed", told_to_end=TOLD_TO_END)
    assert [event["step"] for event in resumed["events"] if event["event"] == "resumed"] == [left_at]
    if code == OWN_LOOP:  # whose steps before the restart are not in that epoch's loss, as the docs say
        for each in (undisturbed, resumed):
            del each["history"][1]["loss"]
    assert resumed["history"] == undisturbed["history"]
    assert _bytes(resumed["weights"]) == _bytes(undisturbed["weights"])
    kept = _kept(tmp_path / "undisturbed")
    assert "step-000000090.npz" in kept
    assert _kept(tmp_path / "disturbed") == kept


def _bytes(arrays):
    return {name: values.tobytes() for name, values in arrays.items()}


def _kept(folder):
    """Every variable in every checkpoint, by the name of its file."""
    found = {}
    for path in folder.glob("*.npz"):
        with np.load(path) as arrays:
            found[path.name] = _bytes(arrays)
    return found


def _steps(kept: Path) -> list[int]:
    return [int(path.stem[5:]) for path in kept.glob("step-*.json")]


def _end_it(folder, interpreter, kept, *, signum, step):
    """Sends the signal soon after that step is kept; returns the newest step that is kept then."""

    def when_kept():
        while max(_steps(kept), default=0) < step:
            time.sleep(0.001)
        os.kill(process.pid, signum)

    process = TrainingProcess(
        folder / "job.json",
        import_roots=[folder],
        compute=ComputeSettings(backend="jax"),
        interpreter=interpreter,
    )
    with process:
        watcher = threading.Thread(target=when_kept)
        watcher.start()
        expected = TrainingPreemptedError if signum == signal.SIGTERM else ComponentError
        with pytest.raises(expected):
            process.wait(show=print)
        watcher.join()
    return max(_steps(kept))
