"""What result.json says of a training that has ended."""

import time

import pytest
from small_job import small_job

from slipway.components.trainer.checkpoint_files import Attempts, Checkpoint, Clock
from slipway.components.trainer.loop.early_stopping import Best
from slipway.components.trainer.result import TrainingPreemptedError, result_in, summarise, summarise_fit
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings

HISTORY = ({"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.3}, {"epoch": 3, "loss": 0.4})
CLOCK = Clock(fit_s=10.0, stepping_s=6.0, timed_steps=60, waiting_s=1.5)
BEST = Best(epoch=2, step=67, value=0.3)


@pytest.fixture
def summary(monkeypatch):
    """The summary of 100 steps of 4 rows, 25 s after the first attempt began."""
    monkeypatch.setattr(time, "time", lambda: 1025.0)

    def make(job=None, *, attempts=1, is_wait_counted=True, constant_batch_step_s=None, **reached):
        return summarise(
            job or small_job(),
            Checkpoint(**{"step": 100, "history": HISTORY, "clock": CLOCK} | reached),
            Attempts(began_at=1000.0, count=attempts),
            is_wait_counted=is_wait_counted,
            constant_batch_step_s=constant_batch_step_s,
            input_advice="cache it",
        )

    return make


def test_speed_is_that_of_the_timed_steps_and_goodput_of_all_of_them(summary):
    found = summary(attempts=3, rollbacks=1)
    assert found["speed"] == {
        "step_ms": 100.0, "constant_batch_step_ms": None, "examples_per_s": 40, "input_waiting_share": 0.25
    }  # fmt: skip
    assert found["time"] == {"useful_s": 10.0, "wall_s": 25.0, "goodput": 0.4, "restarts": 2, "rollbacks": 1}
    assert (found["fit_s"], found["examples_per_s"]) == (10.0, 40)
    assert found["verdict"] == (
        "input-bound: 25% of the time waiting; cache it; 100 ms a step, 40 examples/s; "
        "goodput 40% with 2 restarts and 1 rollback"
    )


def test_where_waiting_is_not_counted_a_constant_batch_tells_of_it(summary):
    assert summary(is_wait_counted=False)["speed"]["input_waiting_share"] is None
    found = summary(is_wait_counted=False, constant_batch_step_s=0.08)["speed"]
    assert (found["constant_batch_step_ms"], found["input_waiting_share"]) == (80.0, 0.2)


def test_too_few_steps_have_no_speed(summary):
    found = summary(clock=Clock())
    assert set(found["speed"].values()) == {None}
    assert (found["time"]["useful_s"], found["examples_per_s"]) == (0.0, 0)


@pytest.mark.parametrize(
    ("changes", "best", "epoch", "loss"),
    [
        ({}, BEST, 3, 0.4),
        ({"checkpoint": CheckpointSettings(serve_best=True)}, BEST, 2, 0.3),
        ({"early_stopping": EarlyStoppingSettings(patience=1)}, BEST, 2, 0.3),
        ({"checkpoint": CheckpointSettings(serve_best=True)}, None, 3, 0.4),  # none was measured
    ],
)
def test_metrics_are_those_of_the_epoch_whose_weights_are_exported(summary, changes, best, epoch, loss):
    found = summary(small_job(**changes), best=best)
    assert (found["epoch"], found["metrics"]) == (epoch, {"loss": loss})


def test_model_that_is_fitted_at_once_has_no_steps():
    found = summarise_fit(metrics={"loss": 0.2}, fit_s=1.23456, wall_s=4.0, words="12 trees")
    assert (found["epoch"], found["metrics"], found["fit_s"]) == (1, {"loss": 0.2}, 1.235)
    assert set(found["speed"].values()) == {None}
    assert (found["time"]["wall_s"], found["time"]["goodput"]) == (4.0, 0.3086)
    assert found["verdict"] == "fitted at once in 1.2 s: 12 trees"
    assert summarise_fit(metrics={}, fit_s=1, wall_s=0, words="")["verdict"] == "fitted at once in 1.0 s"


def test_use_of_the_machine_is_measured(summary):
    machine = summary()["machine"]
    assert machine["cores"] >= 1
    assert machine["memory_peak_bytes"] > 0
    assert machine["cpu_s"] > 0


def test_result_is_the_event_without_its_name():
    assert result_in({"event": "done", "epoch": 2}) == {"epoch": 2}


def test_preempted_training_says_after_which_step():
    assert str(TrainingPreemptedError(7)).endswith("told to stop (SIGTERM), and ended after step 7")
    assert TrainingPreemptedError(7).step == 7
