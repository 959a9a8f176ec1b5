"""Who may compute on an accelerator, against a double of what only a machine with GPUs has."""

import os
import sys
from types import SimpleNamespace

import pytest

from slipway.components.accelerators import keep_to_cpu, share_gpus

VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"


@pytest.fixture
def hidden(monkeypatch):
    """The kinds of device that TensorFlow was kept off; it refuses once `hidden.error` is set."""
    noted = SimpleNamespace(kinds=[], error=None)

    def set_visible_devices(devices, kind):
        if noted.error:
            raise noted.error
        assert devices == []
        noted.kinds.append(kind)

    config = SimpleNamespace(set_visible_devices=set_visible_devices)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    return noted


def test_gpus_are_shared_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    share_gpus()
    assert os.environ[VARIABLE] == "true"
    monkeypatch.setenv(VARIABLE, "false")
    share_gpus()
    assert os.environ[VARIABLE] == "false"


def test_process_beside_the_training_keeps_off_gpus_and_tpus(hidden):
    keep_to_cpu()
    assert hidden.kinds == ["GPU", "TPU"]


def test_notebook_whose_tensorflow_is_in_use_already_goes_on(hidden):
    hidden.error = RuntimeError("Visible devices cannot be modified after being initialized")
    keep_to_cpu()
    assert hidden.kinds == []
