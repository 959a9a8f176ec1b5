"""Devices with JAX, against a double of what only a machine with a GPU has: the platforms that it is told."""

import os
import sys
from types import SimpleNamespace

import pytest

from components.errors import ComponentError
from components.trainer.devices.hosts import Hosts
from components.trainer.devices.with_jax import open_devices
from components.trainer.settings.compute import ComputeSettings


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
