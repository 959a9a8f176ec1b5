"""What the training process is given and how its lines are read."""

import sys
from pathlib import Path

import pytest

from slipway.components.project import PROJECT_ROOT
from slipway.components.trainer import launch
from slipway.components.trainer.launch import TrainingProcess, environment
from slipway.components.trainer.settings.compute import ComputeSettings


def test_training_process_imports_the_project_the_user_code_and_what_was_there():
    found = environment({"PYTHONPATH": "/there"}, import_roots=[Path("/mine")], backend="jax")
    assert found["PYTHONPATH"].split(":") == ["/mine", "/there", str(PROJECT_ROOT)]


def test_training_process_runs_the_chosen_backend_and_keras_3():
    found = environment({"KERAS_BACKEND": "torch"}, import_roots=[], backend="tensorflow")
    assert (found["KERAS_BACKEND"], found["TF_USE_LEGACY_KERAS"]) == ("tensorflow", "0")


def test_log_level_of_the_user_is_kept():
    assert (
        environment({"TF_CPP_MIN_LOG_LEVEL": "0"}, import_roots=[], backend="jax")["TF_CPP_MIN_LOG_LEVEL"]
        == "0"
    )


@pytest.mark.parametrize("interpreter", [None, sys.executable])
def test_only_another_interpreter_is_led_to_an_installed_slipway(monkeypatch, interpreter):
    asked = []
    monkeypatch.setattr(launch, "start_module", lambda *_, **__: None)
    monkeypatch.setattr(
        launch, "import_path", lambda *_, is_same_python, **__: asked.append(is_same_python) or ""
    )
    TrainingProcess(Path("job.json"), import_roots=[], interpreter=interpreter)
    assert asked == [interpreter is None]


@pytest.mark.parametrize(
    ("compute", "forks"),
    [
        (ComputeSettings(), True),
        (ComputeSettings(backend="jax"), False),  # Keras has read its backend
        (ComputeSettings(cpu_devices=8), False),
    ],
)
def test_only_a_training_that_needs_what_is_loaded_is_forked(monkeypatch, compute, forks):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    asked = []
    monkeypatch.setattr(launch, "start_module", lambda *_, may_fork, **__: asked.append(may_fork))
    TrainingProcess(Path("job.json"), import_roots=[], compute=compute)
    assert asked == [forks]
