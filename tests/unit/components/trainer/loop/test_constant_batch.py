"""How long a step takes that never waits for input."""

from types import SimpleNamespace

import pytest

from slipway.components.trainer.checkpoint_files import Clock
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.hosts import Hosts

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn


@pytest.fixture
def asked():
    """Calls the probe for a clock and a number of hosts; returns how many steps it trained."""
    import tensorflow as tf

    from slipway.components.trainer.loop.step_time import constant_batch_step_s

    def call(clock, *, hosts):
        steps = []
        model = SimpleNamespace(
            steps_per_execution=1,
            optimizer=SimpleNamespace(),
            fit=lambda *_, steps_per_epoch, **__: steps.append(steps_per_epoch),
        )
        devices = Devices(kind="cpu", backend="jax", words="", hosts=Hosts(index=0, count=hosts))
        constant_batch_step_s(model, tf.data.Dataset.range(4).batch(2), clock, devices)
        return sum(steps)

    return call


def test_hosts_that_train_together_probe_equally_long_whatever_their_clocks(asked):
    clocks = [Clock(), Clock(timed_steps=10, stepping_s=50.0), Clock(timed_steps=9_999, stepping_s=0.1)]
    assert len({asked(clock, hosts=2) for clock in clocks}) == 1


def test_a_host_alone_probes_as_long_as_its_steps_take(asked):
    slow, fast = Clock(timed_steps=10, stepping_s=50.0), Clock(timed_steps=10_000, stepping_s=50.0)
    assert 2 <= asked(slow, hosts=1) < asked(fast, hosts=1)
    assert asked(Clock(), hosts=1) == 0, "nothing to compare with"


def test_weights_share_no_array_with_their_averages_when_it_trains_on(monkeypatch):
    import tensorflow as tf

    from slipway.components.trainer.loop import step_time

    done = []
    monkeypatch.setattr(step_time, "snapshot", lambda _: ["copies"])
    monkeypatch.setattr(step_time, "restore", lambda _, arrays: done.append(arrays))
    model = SimpleNamespace(
        steps_per_execution=1,
        optimizer=SimpleNamespace(use_ema=True),
        fit=lambda *_, **__: done.append("fit"),
    )
    devices = Devices(kind="cpu", backend="jax", words="", hosts=Hosts(index=0, count=2))

    step_time.constant_batch_step_s(model, tf.data.Dataset.range(4).batch(2), Clock(), devices)

    assert done == [["copies"], "fit"]
