"""What the user's own functions are told of a training follows from its job and its devices."""

from types import SimpleNamespace

import pytest

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_facts_are_those_of_the_job_and_its_devices():
    from slipway.components.trainer.loop.context import TrainingContext, facts_of

    job = SimpleNamespace(hyperparameters={"units": 3}, epochs=4, batch_size=16, seed=7, log_dir=None)
    hosts = SimpleNamespace(count=2, index=1)
    devices = SimpleNamespace(kind="cpu", replicas=8, hosts=hosts, strategy=None)
    context = TrainingContext(**facts_of(job, devices, steps_per_epoch=25, first_step=30))
    assert (context.steps, context.first_step, context.steps_per_epoch) == (100, 30, 25)
    assert (context.device, context.replicas, context.hosts, context.host) == ("cpu", 8, 2, 1)
    assert (context.hyperparameters, context.distribution) == ({"units": 3}, None)
