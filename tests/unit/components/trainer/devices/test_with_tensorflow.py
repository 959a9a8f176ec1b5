"""GPUs with TensorFlow, against a double of what only a machine with GPUs has: which calls, in what order."""

import contextlib
import sys
from types import SimpleNamespace

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.devices.with_tensorflow import open_gpus, open_tpu


@pytest.fixture
def calls(monkeypatch):
    """The calls so far; `tensorflow` is a double with as many GPUs as `calls.gpus` names."""
    noted = SimpleNamespace(made=[], gpus={})

    def mirrored():
        noted.made.append("strategy")
        return SimpleNamespace(scope=contextlib.nullcontext)

    experimental = SimpleNamespace(
        set_memory_growth=lambda gpu, grows: noted.made.append(f"growth {gpu} {grows}"),
        get_device_details=lambda gpu: noted.made.append("details") or noted.gpus[gpu],
    )
    config = SimpleNamespace(list_physical_devices=lambda _: list(noted.gpus), experimental=experimental)
    distribute = SimpleNamespace(MirroredStrategy=mirrored)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config, distribute=distribute))
    return noted


def gpu(*capability):
    return {"compute_capability": capability, "device_name": "H200"}


def test_one_gpu_grows_its_memory_and_needs_no_strategy(calls):
    calls.gpus = {"gpu:0": gpu(9, 0)}
    devices = open_gpus(Hosts())
    assert calls.made[0] == "growth gpu:0 True"
    assert (devices.words, devices.replicas, devices.strategy) == ("1 GPU, H200", 1, None)
    assert devices.prefetch_to_device.keywords == {"device": "/gpu:0"}
    assert devices.has_bfloat16


def test_memory_growth_of_all_gpus_is_set_before_any_is_used(calls):
    calls.gpus = {"gpu:0": gpu(9, 0), "gpu:1": gpu(7, 5)}
    devices = open_gpus(Hosts())
    assert calls.made[:2] == ["growth gpu:0 True", "growth gpu:1 True"]
    assert calls.made[-1] == "strategy"
    assert (devices.replicas, devices.has_bfloat16) == (2, False)  # as the older one


def test_no_gpu_and_several_hosts_are_refused(calls):
    with pytest.raises(ComponentError, match="sees no GPU"):
        open_gpus(Hosts())
    calls.gpus = {"gpu:0": gpu(9, 0)}
    with pytest.raises(ComponentError, match="trains on several with JAX only"):
        open_gpus(Hosts(index=0, count=2))
    assert calls.made == []


def test_a_tpu_of_several_hosts_is_not_opened(calls):
    with pytest.raises(
        ComponentError, match="TPU_WORKER_HOSTNAMES names 2 hosts, and Keras 3 trains on several"
    ):
        open_tpu("local", Hosts(index=1, count=2, source="TPU_WORKER_HOSTNAMES"))
