"""The rules of the global batch, by number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.components.errors import ComponentError
from slipway.components.trainer.global_batch import (
    LEFT_OUT_SHARE,
    choose_steps_per_execution,
    padding_advice,
    require_divisible,
    require_evaluation,
    whole_executions,
)


@pytest.mark.parametrize(
    ("batch_size", "replicas", "hosts", "words", "hint"),
    [
        (100, 8, 1, r"train.batch_size \(100\) must be a multiple of the 8 replicas", "use 96 or 104"),
        (4, 8, 1, "must be a multiple of the 8 replicas", "use 8"),
        (9, 3, 2, "must be a multiple of 3 replicas on 2 hosts", "use 6 or 12"),
    ],
)
def test_uneven_batch_is_refused_with_the_nearest_sizes(batch_size, replicas, hosts, words, hint):
    with pytest.raises(ComponentError, match=words) as caught:
        require_divisible(batch_size, replicas=replicas, hosts=hosts)
    assert caught.value.hint == hint


def test_even_batch_passes():
    require_divisible(96, replicas=8, hosts=2)


def test_eval_split_that_makes_no_batch_is_refused_with_the_number_that_would():
    require_evaluation(8, needed=8)
    with pytest.raises(ComponentError, match=r"the eval split has 5 examples, .* at least 8"):
        require_evaluation(5, needed=8)


@pytest.mark.parametrize(
    ("batch_size", "advice"),
    [
        (1024, ""),  # 128 a core
        (64, ""),  # 8 a core
        (80, "10 examples a core are padded to 16, 38% in vain; best is train.batch_size 128"),
        (1040, "130 examples a core are padded to 256, 49% in vain; best is train.batch_size 2048"),
    ],
)
def test_padding_is_reported_in_numbers(batch_size, advice):
    assert padding_advice(batch_size, replicas=8) == advice


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
