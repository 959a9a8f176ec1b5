import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.question_and_answer import Compiled, Slice
from slipway.components.preflight.roofline import estimate

V5E_8 = Slice(name="v5e-8", generation="v5e", devices=8)
V3_8 = Slice(name="v3-8", generation="v3", devices=8)


@pytest.mark.parametrize(
    ("compiled", "bound", "step_s"),
    [
        ({"flops": 197e12}, "compute", 1.0),
        ({"moved_bytes": 819e9 * 2}, "memory", 2.0),
        ({"collective_bytes": 200_000_000_000}, "communication", 2 * 7 / 8),
    ],
)
def test_the_slowest_part_bounds_the_step(compiled, bound, step_s):
    found = estimate(Compiled(batch_size=800, **compiled), V5E_8, CHIPS["v5e"])

    assert found.bound == bound
    assert found.step_s == pytest.approx(step_s)
    assert found.examples_per_s == pytest.approx(800 / step_s)
    assert found.training_s(8000) == pytest.approx(10 * step_s)
    assert found.cost_usd(8000) == pytest.approx(8 * 1.20 * 10 * step_s / 3600)


def test_a_device_that_is_a_core_has_its_part_of_the_chip_and_a_slice_costs_by_chips():
    found = estimate(Compiled(batch_size=8, flops=61.5e12), V3_8, CHIPS["v3"])

    assert found.step_s == pytest.approx(1.0)
    assert found.price_usd == pytest.approx(8.00)


def test_an_unknown_price_gives_no_cost():
    v7 = Slice(name="v7-8", generation="v7", devices=8)

    assert estimate(Compiled(batch_size=8, flops=1.0), v7, CHIPS["v7"]).cost_usd(1) is None


def test_every_chip_gets_faster_and_no_number_is_missing():
    peaks = [CHIPS[name].peak_flops for name in ("v2", "v3", "v5e", "v6e", "v7")]

    assert peaks == sorted(peaks)
    assert all(chip.usable_bytes > 7e9 and chip.bandwidth_bytes > 1e11 for chip in CHIPS.values())
