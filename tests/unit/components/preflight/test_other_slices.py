import math

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.other_slices import OTHER_SLICES
from slipway.components.preflight.torus import dimensions
from slipway.pipeline.wiring.vertex_tpu_slices import TPU_SLICES


def test_names_devices_hosts_and_topologies_agree():
    for name, each in OTHER_SLICES.items():
        chips = math.prod(dimensions(each.topology))
        assert name == f"{each.generation}-{2 * chips}"
        assert each.devices == chips * CHIPS[each.generation].devices
        assert each.hosts == chips // 4


def test_none_of_them_is_rented_by_vertex_ai():
    assert not OTHER_SLICES.keys() & TPU_SLICES.keys()
    assert not any(each.machine for each in OTHER_SLICES.values())


def test_those_of_the_documentation_are_there():
    v5p = OTHER_SLICES["v5p-128"]

    assert (v5p.topology, v5p.devices, v5p.hosts) == ("4x4x4", 64, 16)
    assert OTHER_SLICES["v4-8"].devices == 4
    assert OTHER_SLICES["v7-128"].devices == 128
