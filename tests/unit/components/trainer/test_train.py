"""What the training process tells of an error of the user's code."""

import pytest
from small_job import small_job

from slipway.components.trainer import train
from slipway.components.trainer.job import JOB_FILE
from slipway.components.trainer.settings.compute import ComputeSettings


class TracerBoolConversionError(Exception):
    """Named like JAX's own."""


STREAMED = (
    "Graph execution error: assertion failed: [the transformed column x holds 3000000000, beyond 32 bits]"
)


@pytest.mark.parametrize(
    ("backend", "message", "hint"),
    [
        ("jax", "Python wants a value that only the device has", "keras.ops instead of Python"),
        ("tensorflow", "TracerBoolConversionError: no bool", ""),
    ],
)
def test_an_error_of_a_trace_is_told_with_its_remedy(tmp_path, monkeypatch, backend, message, hint):
    told = told_of(TracerBoolConversionError("no bool"), tmp_path, monkeypatch, backend)
    assert told["message"].startswith(message)
    assert told["hint"].startswith(hint)


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_what_the_evaluation_lacks_of_a_model_with_a_step_of_its_own_is_told(tmp_path, monkeypatch, backend):
    error = ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
    assert "write test_step beside train_step" in told_of(error, tmp_path, monkeypatch, backend)["hint"]


@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_streamed_value_that_does_not_fit_is_told_by_column_with_the_remedy(tmp_path, monkeypatch, backend):
    told = told_of(RuntimeError(STREAMED), tmp_path, monkeypatch, backend)
    assert told["message"].startswith(
        "the transformed column x holds 3000000000, beyond 32 bits; models take"
    )
    assert told["hint"].startswith("let preprocessing_fn return")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        # As h5py raises it, and `whole_file` names the file.
        (
            OSError(
                28,
                "Can't synchronously write data (file write failed: time = Mon\n, error message = "
                "'No space left on device')",
                "/full/model.weights.h5",
            ),
            "No space left on device: /full/model.weights.h5",
        ),
        (RuntimeError("/full/x; No space left on device"), "RuntimeError: /full/x; No space left on device"),
    ],
)
@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_full_disk_is_told_with_the_file_and_the_variable_that_names_another(
    tmp_path, monkeypatch, backend, error, message
):
    told = told_of(error, tmp_path, monkeypatch, backend)
    assert told["message"] == message
    assert told["hint"] == "make room on that disk; TMPDIR names another one for temporary files"


def told_of(error, tmp_path, monkeypatch, backend):
    """The last event of a training that this error ends."""
    job = small_job(
        train_files=("train",),
        model="no_such_package.build_model",
        batch_size=1,
        output_dir=str(tmp_path),
        compute=ComputeSettings(backend=backend),
    )
    file = tmp_path / JOB_FILE
    file.write_text(job.to_json(), encoding="utf-8")

    def fail(*_):
        raise error

    told = {}
    monkeypatch.setattr(train, "train", fail)
    monkeypatch.setattr(train.Preemption, "listen", lambda _: None)

    assert train.main([str(file)], tell=lambda event, **values: told.update(values, event=event)) == 1
    assert told["event"] == "failed"
    return told
