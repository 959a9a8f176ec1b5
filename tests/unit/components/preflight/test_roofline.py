from dataclasses import replace

import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.question_and_answer import Collective, Compiled, Slice
from slipway.components.preflight.roofline import collective_s, estimate

V5E_8 = Slice(name="v5e-8", generation="v5e", devices=8)
ALL_REDUCE = Collective(
    kind="all-reduce",
    count=1,
    result_bytes=200_000_000_000,
    devices=8,
    chips=8,
    shape="2x4",
    links=2,
    hops=4,
)
V3_8 = Slice(name="v3-8", generation="v3", devices=8)


@pytest.mark.parametrize(
    ("compiled", "bound", "step_s"),
    [
        ({"flops": 197e12}, "compute", 1.0),
        ({"moved_bytes": 819e9 * 2}, "memory", 2.0),
        # Two of four links, with 50e9 bytes a second each.
        ({"collectives": (ALL_REDUCE,)}, "communication", 2 * 7 / 8 * 2),
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


@pytest.mark.parametrize(
    ("kind", "sent_bytes"),
    [
        ("all-reduce", 2 * 3 / 4 * 4e9),
        ("all-gather", 3 / 4 * 4e9),
        ("reduce-scatter", 3 / 4 * 4e9 * 8),  # the result is one part of eight
        ("all-to-all", 3 / 4 * 4e9 * 2),  # both devices of a chip
        ("collective-permute", 4e9 * 2),
    ],
)
def test_each_kind_sends_what_a_ring_of_chips_sends(kind, sent_bytes):
    sent = replace(ALL_REDUCE, kind=kind, result_bytes=4_000_000_000, devices=8, chips=4, links=1)

    assert collective_s(sent, CHIPS["v5e"]) == pytest.approx(sent_bytes / 50e9)


def test_little_takes_as_long_as_its_way():
    little = replace(ALL_REDUCE, count=3, result_bytes=4)

    assert collective_s(little, CHIPS["v5e"]) == pytest.approx(3 * 2 * 4 * 0.5e-6)
    assert collective_s(replace(little, kind="all-gather"), CHIPS["v5e"]) == pytest.approx(3 * 4 * 0.5e-6)


def test_devices_of_one_chip_use_no_links():
    assert collective_s(replace(ALL_REDUCE, chips=1, links=0, hops=0), CHIPS["v7"]) == 0.0


@pytest.mark.parametrize(
    ("generation", "link_bytes"), [("v4", 45e9), ("v5e", 50e9), ("v5p", 100e9), ("v6e", 100e9)]
)
def test_a_link_is_as_fast_as_in_how_to_scale_your_model(generation, link_bytes):
    chip = CHIPS[generation]

    assert chip.link_bytes / chip.links == pytest.approx(link_bytes, rel=0.01)
