"""How many steps one call of the compiled function takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.components.errors import ComponentError
from slipway.components.trainer.steps_per_execution import (
    LEFT_OUT_SHARE,
    choose_steps_per_execution,
    whole_executions,
)


@pytest.mark.parametrize(
    ("steps_per_epoch", "step_s", "steps"),
    [
        (39, 0, 39),
        (100, 0, 50),
        (53, 0, 26),
        (1009, 0, 50),
        (103, 0, 34),
        (149, 0, 49),
        (1000, 0.1, 5),
        (1000, 2, 1),
        (1, 0, 1),
    ],
)
def test_steps_per_execution_by_number(steps_per_epoch, step_s, steps):
    assert choose_steps_per_execution(steps_per_epoch, step_s=step_s) == steps


def test_unknown_step_time_means_one_step():
    assert choose_steps_per_execution(1000, step_s=float("inf")) == 1


@given(st.integers(1, 10**6), st.floats(0, 10))
def test_hardly_any_step_is_left_out(steps_per_epoch, step_s):
    steps = choose_steps_per_execution(steps_per_epoch, step_s=step_s)
    left_out = steps_per_epoch - whole_executions(steps_per_epoch, steps)
    assert left_out <= LEFT_OUT_SHARE * steps_per_epoch


def test_execution_longer_than_an_epoch_is_refused():
    with pytest.raises(ComponentError, match=r"train.steps_per_execution \(50\) is above the 39"):
        whole_executions(39, 50)


@given(st.integers(1, 10**4), st.integers(1, 100))
def test_one_call_takes_no_more_steps_than_lie_between_checkpoints(steps_per_epoch, limit):
    assert choose_steps_per_execution(steps_per_epoch, step_s=0.0, limit=limit) <= limit
