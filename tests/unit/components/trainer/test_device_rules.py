"""What a training refuses because of its devices, by settings alone; who asks has tests of its own."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.device_rules import (
    is_divided_by_tensorflow,
    require_agreeing_hosts,
    require_custom_loop_gets,
    require_no_model_parallelism,
    require_one_shape,
    require_one_step_of_torch,
    require_plain_steps,
)
from slipway.components.trainer.settings.blow_up import BlowUpSettings
from slipway.components.trainer.settings.step import StepSettings


@pytest.mark.parametrize(
    ("backend", "kind", "replicas", "is_divided"),
    [
        ("tensorflow", "tpu", 1, True),
        ("tensorflow", "gpu", 2, True),
        ("tensorflow", "gpu", 1, False),
        ("jax", "tpu", 8, False),
    ],
)
def test_a_strategy_is_of_a_tpu_or_of_several_devices(backend, kind, replicas, is_divided):
    assert is_divided_by_tensorflow(backend=backend, kind=kind, replicas=replicas) == is_divided


@pytest.mark.parametrize("backend", ["tensorflow", "torch"])
def test_only_jax_shares_a_model_among_devices(backend):
    require_no_model_parallelism(1, backend=backend)
    require_no_model_parallelism(2, backend="jax")
    with pytest.raises(ComponentError, match=f"train.model_parallel is 2, which {backend} does not have"):
        require_no_model_parallelism(2, backend=backend)


def test_steps_of_a_strategy_are_plain_and_the_optimizer_s_own_sums_count():
    require_plain_steps(StepSettings(), kind="gpu")
    require_plain_steps(StepSettings(xla="always"), kind="tpu")
    with pytest.raises(ComponentError, match=r"^train\.steps_per_execution, train\.accumulate_steps cannot"):
        require_plain_steps(StepSettings(steps_per_execution=4, accumulate_steps=2), kind="tpu")
    with pytest.raises(ComponentError, match=r"^train\.xla cannot"):
        require_plain_steps(StepSettings(xla="always"), kind="gpu")
    with pytest.raises(ComponentError, match=r"^gradient_accumulation_steps of the optimizer cannot"):
        require_plain_steps(StepSettings(), kind="tpu", accumulated=2)


def test_torch_takes_one_step_in_a_call():
    require_one_step_of_torch(StepSettings(), backend="torch")
    require_one_step_of_torch(StepSettings(steps_per_execution=4), backend="jax")
    with pytest.raises(ComponentError, match=r"steps_per_execution \(4\) must be 1 with train.backend torch"):
        require_one_step_of_torch(StepSettings(steps_per_execution=4), backend="torch")


def test_custom_loop_takes_whole_batches_one_by_one():
    require_custom_loop_gets("mine.build_model", StepSettings(), divided_by="")
    with pytest.raises(ComponentError, match=r"mine\.fit .* gets whole batches, which v5e-8 would divide"):
        require_custom_loop_gets("mine.build_model", StepSettings(), divided_by="v5e-8")
    with pytest.raises(ComponentError, match=r"steps_per_execution is 8, and mine.fit takes steps itself"):
        require_custom_loop_gets("mine.build_model", StepSettings(steps_per_execution=8), divided_by="")


def test_batches_of_several_lengths_are_refused_by_tensorflow_on_a_tpu_alone():
    require_one_shape(backend="jax", kind="tpu")
    require_one_shape(backend="tensorflow", kind="gpu")
    with pytest.raises(ComponentError, match="batches of one shape"):
        require_one_shape(backend="tensorflow", kind="tpu")


def test_hosts_agree_on_steps_and_on_the_best_epoch_s_folder():
    trials = BlowUpSettings(trials=1)
    require_agreeing_hosts(1, blow_up=trials, has_best_nowhere=True)
    require_agreeing_hosts(2, blow_up=BlowUpSettings(), has_best_nowhere=False)
    with pytest.raises(ComponentError, match=r"blow_up\.trials \(1\) must be 0 on several hosts"):
        require_agreeing_hosts(2, blow_up=trials, has_best_nowhere=False)
    with pytest.raises(ComponentError, match="the 2 hosts have no folder in common"):
        require_agreeing_hosts(2, blow_up=BlowUpSettings(), has_best_nowhere=True)
    with pytest.raises(ComponentError, match=r"the trials of tune keep no checkpoints .* the 2 hosts") as no:
        require_agreeing_hosts(2, blow_up=BlowUpSettings(), has_best_nowhere=True, has_best_of_trials=True)
    assert "tune=null" in no.value.hint
