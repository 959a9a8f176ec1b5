"""A group of a training job's settings checks itself and names keys as a workload file does."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings
from slipway.components.trainer.settings.watch import WatchSettings, step_range


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ComputeSettings(device="npu"), r"train.device ('npu') is none of auto, cpu, gpu, tpu"),
        (lambda: ComputeSettings(cpu_devices=0), "train.cpu_devices (0) must be a whole number >= 1"),
        (lambda: CheckpointSettings(minutes=0.0), "train.checkpoint.minutes (0.0) must be a number > 0"),
        (
            lambda: EarlyStoppingSettings(share=1),
            "train.early_stopping.share (1) must be a number > 0 and < 1",
        ),
        (
            lambda: WatchSettings(profile_steps="20:10"),
            "train.profile_steps ('20:10') must be FIRST:LAST, both counted from 1",
        ),
    ],
)
def test_value_that_breaks_a_rule_is_refused_by_its_key_in_the_workload(make, words):
    with pytest.raises(ComponentError) as caught:
        make()
    assert caught.value.message == words


@pytest.mark.parametrize(
    "text", ["0:1", "2:1", "1", "1:", ":1", "1:2:3", " 1:2", "1:2\n", "-1:2", "\u0661:\u0662"]
)
def test_what_is_no_range_of_steps_is_none(text):
    assert step_range(text) is None


def test_steps_to_profile_are_two_numbers_in_order_counted_from_1():
    assert (step_range("10:20"), step_range("1:1")) == ((10, 20), (1, 1))


def test_group_comes_back_from_its_plain_values_and_no_others():
    kept = CheckpointSettings(keep=3, best_goal="max")
    assert CheckpointSettings.from_json(kept.to_json()) == kept
    with pytest.raises(ComponentError, match=r"lacks \['keep'\] and does not know \['keeps'\]"):
        CheckpointSettings.from_json({**{k: v for k, v in kept.to_json().items() if k != "keep"}, "keeps": 3})
