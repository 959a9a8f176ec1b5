"""What several hosts cannot agree on is refused, on each of them."""

import pytest
from small_job import small_job

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.loop.host_agreement import require_agreement, require_same_step
from slipway.components.trainer.settings.blow_up import BlowUpSettings
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings

TWO = Hosts(index=1, count=2, coordinator="host-0:1", source="a test")


def devices(*steps):
    """Of hosts that pass these steps."""
    answers = iter([min(steps), -max(steps)])
    return Devices(kind="cpu", backend="jax", words="", hosts=TWO, min_over_hosts=lambda _: next(answers))


GOES_BACK = {"blow_up": BlowUpSettings(trials=1), "checkpoint_dir": "shared"}
TAKES_THE_BEST = [
    {"early_stopping": EarlyStoppingSettings(patience=3)},
    {"checkpoint": CheckpointSettings(serve_best=True)},
]


def test_going_back_on_several_hosts_is_refused():
    with pytest.raises(ComponentError, match=r"blow_up\.trials \(1\) must be 0 on several hosts.* are 2:"):
        require_agreement(small_job(**GOES_BACK), TWO)


@pytest.mark.parametrize("settings", TAKES_THE_BEST)
def test_best_epoch_of_several_hosts_needs_a_folder_that_they_share(settings):
    with pytest.raises(ComponentError, match="the 2 hosts have no folder in common") as caught:
        require_agreement(small_job(**settings), TWO)
    assert caught.value.hint.startswith(
        "set train.checkpoint.folder to one that all hosts reach, such as gs://"
    )
    require_agreement(small_job(**settings, checkpoint_dir="shared"), TWO)


@pytest.mark.parametrize("settings", [GOES_BACK, *TAKES_THE_BEST])
def test_one_host_may_do_all_of_it(settings):
    require_agreement(small_job(**settings), Hosts())


def test_hosts_go_on_from_the_same_step():
    require_same_step(8, devices(8, 8))
    require_same_step(8, Devices(kind="cpu", backend="jax", words=""))


@pytest.mark.parametrize("own", [0, 8])
def test_different_steps_are_reported_on_each_host(own):
    words = f"this one after step {own}, all of them after steps 0 to 8"
    with pytest.raises(ComponentError, match=words):
        require_same_step(own, devices(0, 8))
