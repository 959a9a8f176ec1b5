"""The slices of TPUs that Vertex AI has."""

import math

import pytest

from slipway.pipeline.wiring.vertex_tpu_slices import TPU_SLICES


@pytest.mark.parametrize("name", TPU_SLICES)
def test_topology_hosts_and_devices_of_a_slice_agree(name):
    tpu = TPU_SLICES[name]
    machine = tpu.machine
    if "tpuTopology" not in machine:
        assert (machine["acceleratorCount"], tpu.hosts) == (tpu.devices, 1)
        return
    chips = math.prod(map(int, machine["tpuTopology"].split("x")))
    per_host = int(machine["machineType"].rpartition("-")[2].removesuffix("t"))
    cores = 2 if name.startswith("v7") else 1
    assert (tpu.hosts * per_host, tpu.devices) == (chips, chips * cores)
    assert name.endswith(f"-{tpu.devices}")
