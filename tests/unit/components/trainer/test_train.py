"""What the training process tells of an error of the user's code."""

import pytest

from slipway.components.trainer import train
from slipway.components.trainer.features import Feature
from slipway.components.trainer.job import JOB_FILE, TrainingJob
from slipway.components.trainer.settings.compute import ComputeSettings


class TracerBoolConversionError(Exception):
    """Named like JAX's own."""


@pytest.mark.parametrize(
    ("backend", "message", "hint"),
    [
        ("jax", "Python wants a value that only the device has", "keras.ops instead of Python"),
        ("tensorflow", "TracerBoolConversionError: no bool", ""),
    ],
)
def test_an_error_of_a_trace_is_told_with_its_remedy(tmp_path, monkeypatch, backend, message, hint):
    job = TrainingJob(
        train_files=("train",),
        eval_files=(),
        features=(Feature(name="x", dtype="float32"), Feature(name="y", dtype="float32")),
        label="y",
        model="no_such_package.build_model",
        hyperparameters={},
        batch_size=1,
        epochs=1,
        seed=1,
        output_dir=str(tmp_path),
        compute=ComputeSettings(backend=backend),
    )
    file = tmp_path / JOB_FILE
    file.write_text(job.to_json(), encoding="utf-8")

    def fail(*_):
        raise TracerBoolConversionError("no bool")

    told = {}
    monkeypatch.setattr(train, "train", fail)
    monkeypatch.setattr(train.Preemption, "listen", lambda _: None)

    assert train.main([str(file)], tell=lambda event, **values: told.update(values, event=event)) == 1
    assert told["event"] == "failed"
    assert told["message"].startswith(message)
    assert told["hint"].startswith(hint)
