"""What the training process is given and how its lines are read."""

from pathlib import Path

import pytest

from components.trainer.process import PROJECT_ROOT, environment, read_event


def test_training_process_imports_the_project_the_user_code_and_what_was_there():
    found = environment({"PYTHONPATH": "/there"}, import_roots=[PROJECT_ROOT, Path("/mine")], backend="jax")
    assert found["PYTHONPATH"].split(":") == [str(PROJECT_ROOT), "/mine", "/there"]


def test_training_process_runs_the_chosen_backend_and_keras_3():
    found = environment({"KERAS_BACKEND": "torch"}, import_roots=[], backend="tensorflow")
    assert (found["KERAS_BACKEND"], found["TF_USE_LEGACY_KERAS"]) == ("tensorflow", "0")


def test_log_level_of_the_user_is_kept():
    assert (
        environment({"TF_CPP_MIN_LOG_LEVEL": "0"}, import_roots=[], backend="jax")["TF_CPP_MIN_LOG_LEVEL"]
        == "0"
    )


@pytest.mark.parametrize("line", ["", "hello", "{broken", "{}", '{"loss": 1}', "[1]", "3"])
def test_line_that_is_no_event_is_left_alone(line):
    assert read_event(line) is None


def test_event_is_read():
    assert read_event('{"event": "epoch", "epoch": 1}\n') == {"event": "epoch", "epoch": 1}
