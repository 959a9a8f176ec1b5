"""The line that says what bounds a training, and how much of its time was useful."""

from dataclasses import replace

import pytest

from slipway.components.trainer.speed_summary import Measured, verdict

FAST = Measured(
    step_s=0.001, constant_batch_step_s=0.00097, batch_size=256, useful_s=30.0, wall_s=40.0, attempts=1
)


def test_training_that_hardly_waits_is_bound_by_its_steps():
    assert verdict(FAST) == (
        "compute-bound: 3% of the time waiting for input; 1 ms a step, 256,000 examples/s; goodput 75%"
    )


def test_training_that_waits_is_reported_the_remedy():
    slow = replace(
        FAST, constant_batch_step_s=0.00038, input_advice="cache: memory would hold the set in 84 MB"
    )
    assert verdict(slow).startswith(
        "input-bound: 62% of the time waiting; cache: memory would hold the set in 84 MB; 1 ms a step"
    )


def test_waiting_that_was_counted_goes_before_a_comparison():
    counted = replace(FAST, step_waiting_s=0.0004)
    assert verdict(counted).startswith("input-bound: 40% of the time waiting; 1 ms a step")
    assert replace(counted, constant_batch_step_s=None).waiting_share == 0.4
    assert replace(counted, step_s=None).waiting_share is None


@pytest.mark.parametrize(
    ("attempts", "rollbacks", "words"),
    [
        (2, 0, "goodput 75% with 1 restart"),
        (4, 0, "goodput 75% with 3 restarts"),
        (1, 1, "goodput 75% with 1 rollback"),
        (2, 2, "goodput 75% with 1 restart and 2 rollbacks"),
    ],
)
def test_interruptions_are_counted(attempts, rollbacks, words):
    assert verdict(replace(FAST, attempts=attempts, rollbacks=rollbacks)).endswith(words)


def test_nothing_is_claimed_that_was_not_measured():
    untimed = replace(FAST, step_s=None, constant_batch_step_s=None, useful_s=0.0)
    assert verdict(untimed) == "too few steps to say what bounds them; goodput 0%"
    assert (untimed.waiting_share, untimed.goodput) == (None, 0.0)
    alone = replace(FAST, step_waiting_s=None, constant_batch_step_s=None)
    assert verdict(alone).startswith("not measured what bounds the steps; ")


def test_shares_stay_between_none_and_all():
    faster_than_constant = replace(FAST, constant_batch_step_s=0.002, wall_s=10.0)
    assert (faster_than_constant.waiting_share, faster_than_constant.goodput) == (0.0, 1.0)
