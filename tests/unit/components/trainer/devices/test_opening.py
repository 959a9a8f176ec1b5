"""The devices tried for `train.device`, their order, and the message if none is available."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices import opening
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.evidence import Evidence
from slipway.components.trainer.settings.compute import ComputeSettings

SIGNS = (
    Evidence(kind="tpu", words="TPU_NAME is my-node", address="my-node"),
    Evidence(kind="gpu", words="/dev/nvidia0"),
)


@pytest.fixture
def machine(monkeypatch):
    """A machine with signs of a TPU and a GPU, where opening works for the kinds that are named."""

    def make(*works, signs=SIGNS):
        def opened(kind, *_):
            if kind not in works:
                raise ComponentError(f"no {kind} answers")
            return Devices(kind=kind, backend="tensorflow", words=kind)

        monkeypatch.setattr(opening, "find_evidence", lambda *_args, **_more: signs)
        monkeypatch.setattr(opening, "count_tpu_cores", lambda *_: 8)
        monkeypatch.setattr(opening, "_opened", opened)

    return make


@pytest.mark.parametrize(
    ("works", "kind", "passed_over"),
    [
        (("tpu", "gpu", "cpu"), "tpu", ()),
        (("gpu", "cpu"), "gpu", ("TPU not used: no tpu answers",)),
        (("cpu",), "cpu", ("TPU not used: no tpu answers", "GPU not used: no gpu answers")),
    ],
)
def test_auto_falls_back_to_the_gpu_then_to_the_cpu_and_says_so(machine, works, kind, passed_over):
    machine(*works)
    devices = opening.open_devices(ComputeSettings(), {})
    assert (devices.kind, devices.passed_over) == (kind, passed_over)


def test_one_of_several_hosts_falls_back_to_nothing(machine):
    machine("cpu")
    hosts = {"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "1"}
    with pytest.raises(ComponentError, match="host 1 of 2 cannot use its TPU: no tpu answers"):
        opening.open_devices(ComputeSettings(), hosts)


def test_device_that_is_asked_for_is_had_or_nothing_is(machine):
    machine("cpu")
    with pytest.raises(ComponentError, match="no tpu answers"):
        opening.open_devices(ComputeSettings(device="tpu"), {})


def test_explicit_tpu_says_what_was_found_instead(machine):
    machine("gpu", signs=SIGNS[1:])
    with pytest.raises(
        ComponentError, match=r"train\.device is tpu, but there is none: .*; found /dev/nvidia0"
    ):
        opening.open_devices(ComputeSettings(device="tpu"), {})


def test_model_parallelism_is_refused_where_the_backend_has_none(machine):
    machine("cpu")
    settings = ComputeSettings(model_parallel=2, layout={".*kernel": (None, "model")})
    with pytest.raises(ComponentError, match="model_parallel is 2, which tensorflow does not have"):
        opening.open_devices(settings, {})
