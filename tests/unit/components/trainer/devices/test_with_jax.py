"""Devices with JAX, against a double of what only a machine with a GPU has: the platforms that it is told."""

import math
import os
import sys
import threading
from types import SimpleNamespace

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices import with_jax
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.devices.with_jax import open_devices, require_layout
from slipway.components.trainer.settings.compute import ComputeSettings


@pytest.fixture
def jax(monkeypatch):
    """A JAX that reads its platforms once, as the real one, and whose GPU is in use by somebody else."""
    configured = SimpleNamespace(platforms="cuda,cpu")

    def list_devices(kind):
        if configured.platforms.startswith("cuda"):
            raise RuntimeError("Unable to initialize backend 'cuda': no supported devices found")
        return [f"{kind}:0"]

    def update(name, value):
        assert name == "jax_platforms"
        configured.platforms = value

    double = SimpleNamespace(
        config=SimpleNamespace(update=update),
        devices=lambda _kind: [SimpleNamespace(device_kind="double")],
    )
    keras = SimpleNamespace(distribution=SimpleNamespace(list_devices=list_devices))
    tensorflow = SimpleNamespace(config=SimpleNamespace(set_visible_devices=lambda *_: None))
    for name, module in {"jax": double, "keras": keras, "tensorflow": tensorflow}.items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("JAX_PLATFORMS", "XLA_PYTHON_CLIENT_PREALLOCATE", "NPROC"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


@pytest.mark.usefixtures("jax")
def test_cpu_is_opened_after_a_gpu_that_could_not_be():
    settings = ComputeSettings(backend="jax")
    with pytest.raises(ComponentError, match="cannot use the GPU: Unable to initialize backend 'cuda'"):
        open_devices("gpu", Hosts(), settings)
    assert open_devices("cpu", Hosts(), settings).kind == "cpu"


class EndedError(Exception):
    """In the place of the end of the process."""


@pytest.fixture
def hosts(jax, monkeypatch):
    """Several hosts that JAX has brought together; the other one is not at its end yet."""
    other_ends, is_asked, waited_for = threading.Event(), threading.Event(), []

    def shutdown():
        waited_for.append("the other host")
        is_asked.set()
        other_ends.wait(60)

    class Parting(threading.Thread):
        def join(self, timeout=None):
            assert is_asked.wait(60)
            super().join(timeout)

    def end(code):
        raise EndedError(code)

    sys.modules["jax"].distributed = SimpleNamespace(is_initialized=lambda: True, shutdown=shutdown)
    monkeypatch.setattr(with_jax.os, "_exit", end)
    monkeypatch.setattr(with_jax, "PARTING_LIMIT_S", 0.01)
    monkeypatch.setattr(with_jax, "threading", SimpleNamespace(Thread=Parting))
    yield waited_for
    other_ends.set()


def test_host_that_has_failed_does_not_wait_for_the_others_for_long(hosts):
    with pytest.raises(EndedError, match="138"):
        with_jax.leave(138)
    assert hosts == ["the other host"]


def test_host_that_has_closed_its_output_does_not_wait_for_the_others_for_long(hosts, monkeypatch, tmp_path):
    with (tmp_path / "out").open("w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
    with pytest.raises(EndedError, match="138"):
        with_jax.leave(138)


def test_host_that_has_not_failed_leaves_the_waiting_to_the_exit(hosts):
    with pytest.raises(SystemExit, match="0"):
        with_jax.leave(0)
    assert hosts == []


def test_process_that_is_the_only_host_just_ends(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert not with_jax.is_one_of_several_hosts()
    with pytest.raises(SystemExit, match="1"):
        with_jax.leave(1)


def variable(path, shape, held):
    part = SimpleNamespace(index=path, data=SimpleNamespace(shape=held, size=math.prod(shape)))
    return SimpleNamespace(path=path, shape=shape, value=SimpleNamespace(addressable_shards=[part]))


def test_a_variable_that_the_layout_writes_out_is_an_exception_from_its_patterns():
    model = SimpleNamespace(
        variables=[variable("a/kernel", (8, 8), (8, 4)), variable("b/kernel", (8, 8), (8, 8))],
        trainable_variables=[],
    )
    layout = {".*kernel": (None, "model")}

    with pytest.raises(ComponentError, match="b/kernel is not divided"):
        require_layout(model, layout)
    words = require_layout(model, {**layout, "b/kernel": (None, None)})

    assert words == "each device holds 96 of the model's 128 numbers"
