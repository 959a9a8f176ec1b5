"""A training on JAX goes on, after SIGTERM and kill -9 at random steps, to the bits of an undisturbed one."""

import os
import random
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.launch import TrainingProcess
from slipway.components.trainer.result import TrainingPreemptedError
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.compute import ComputeSettings

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
