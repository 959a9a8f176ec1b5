import statistics
from dataclasses import replace

import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.expected import (
    FAR_SHORTER,
    FEWEST,
    UNLIKE_ALL,
    expect,
    kind_of,
    ratio,
    spread,
)
from slipway.components.preflight.published_steps import PUBLISHED
from slipway.components.preflight.question_and_answer import Compiled, Layer, Slice
from slipway.components.preflight.roofline import estimate

V3_8 = Slice(name="v3-8", generation="v3", devices=8)
CONVOLUTIONS = (
    Layer(name="early", kind="Conv2D", matrices=((3, 3, 64, 64),), positions=112 * 112),
    Layer(name="classes", kind="Dense", matrices=((2048, 1000),), is_output=True),
)
ATTENTION = (
    Layer(name="tokens", kind="Embedding", matrices=((30000, 512),)),
    Layer(name="looks_back", kind="MultiHeadAttention"),
    Layer(name="query", kind="EinsumDense", matrices=((512, 8, 64),), positions=128),
    Layer(name="wide", kind="Dense", matrices=((512, 2048),), positions=128),
)
DENSE = (Layer(name="wide", kind="Dense", matrices=((4096, 4096),)),)


def step(**compiled):
    return estimate(Compiled(batch_size=1024, **compiled), V3_8, CHIPS["v3"])


COMPUTE = step(flops=61.5e12)
MEMORY = step(moved_bytes=450e9)


def test_median_and_range_are_those_of_the_rows_of_the_kind_and_bound():
    images = [each for each in PUBLISHED if each.network.name == "ResNet-50" and each.slice != "v2-8"]

    found = spread("convolution", "memory")

    ratios = sorted(map(ratio, images))
    assert (found.rows, found.models) == (len(images), 1)
    assert (found.low, found.median, found.high) == (ratios[0], statistics.median(ratios), ratios[-1])


def test_rows_of_a_generation_are_taken_alone_if_they_are_three_or_more():
    ratios = sorted(ratio(each) for each in PUBLISHED if each.generation == "v6e")

    found = spread("attention", "compute", "v6e")

    assert (found.rows, found.generation) == (len(ratios), "v6e")
    assert (found.low, found.median, found.high) == (ratios[0], statistics.median(ratios), ratios[-1])
    assert spread("attention", "compute", "v3") is None


def test_few_rows_say_nothing():
    assert spread("attention", "memory") is None
    assert spread("convolution", "communication") is None
    assert spread("convolution", "compute").rows == FEWEST


def test_a_faster_chip_in_the_table_of_chips_changes_what_is_expected(monkeypatch):
    row = next(each for each in PUBLISHED if each.generation == "v6e")
    before = ratio(row)

    monkeypatch.setitem(CHIPS, "v6e", replace(CHIPS["v6e"], peak_flops=2 * CHIPS["v6e"].peak_flops))

    assert ratio(row) == pytest.approx(2 * before)


@pytest.mark.parametrize(
    ("layers", "kind"),
    [
        (CONVOLUTIONS, "convolution"),
        (ATTENTION, "attention"),
        # A patch of an image is a convolution, too, and has little of the work.
        ((Layer(name="patch", kind="Conv2D", matrices=((16, 16, 3, 64),)), *ATTENTION), "attention"),
        (DENSE, None),
        ((), None),
        ((*CONVOLUTIONS, *ATTENTION), None),
        ((Layer(name="wider", kind="Dense", matrices=((4096, 8192),), positions=128), *ATTENTION), None),
        ((*CONVOLUTIONS, Layer(name="each", kind="DepthwiseConv2D")), None),
        ((*ATTENTION, Layer(name="reads", kind="LSTM", matrices=((64, 256),))), None),
    ],
)
def test_kind_is_of_the_layers_that_do_most_of_the_work(layers, kind):
    assert kind_of(layers) == kind


def test_a_step_like_those_of_the_table_has_their_spread_and_says_whose_they_are():
    found = expect(MEMORY, CONVOLUTIONS, generation="v3", rules=["padding"])

    assert found.spread is spread("convolution", "memory", "v3")
    assert found.why == (
        "6 memory-bound published steps of models of convolutions on v3 (of one model) took 1.3 to 2.1 times "
        "their least time; measured by others, not by us"
    )
    assert "(of one model)" not in expect(COMPUTE, ATTENTION, generation="v3", rules=[]).why


def test_where_published_steps_took_less_than_the_least_time_nothing_is_expected():
    # ResNet-50, 128 images a device, as compiled for v4-8, and as v4-128 took for it: 625 steps a block.
    counted = Compiled(batch_size=512, flops=2880664502272.0, moved_bytes=65000660992.0)
    least = estimate(counted, Slice(name="v4-8", generation="v4", devices=4), CHIPS["v4"])

    said = expect(least, CONVOLUTIONS, generation="v4", rules=[])

    assert least.bound == "memory"
    assert [round(block_s / 625 / least.step_s, 2) for block_s in (24.4465, 23.206)] == [0.74, 0.70]
    assert said.spread is None
    assert "on v4 memory-bound steps were published that took 0.7 times their least time" in said.why
    assert expect(COMPUTE, ATTENTION, generation="v4", rules=[]).spread is spread(
        "attention", "compute", "v4"
    )


def test_a_generation_with_few_rows_or_none_as_short_has_the_spread_of_all():
    every = spread("attention", "compute")
    own = spread("attention", "compute", "v7")
    # The shortest on v7 is 27 times as long as the shortest of all.
    short = replace(COMPUTE, compute_s=0.99 * FAR_SHORTER * own.shortest_s)
    long = replace(COMPUTE, compute_s=1.01 * FAR_SHORTER * own.shortest_s)

    assert expect(long, ATTENTION, generation="v7", rules=[]).spread is own
    assert expect(short, ATTENTION, generation="v7", rules=[]).spread is every
    assert expect(long, ATTENTION, generation="v3", rules=[]).spread is every
    assert " on v" not in expect(long, ATTENTION, generation="v3", rules=[]).why


@pytest.mark.parametrize(
    ("found", "layers", "rules", "why"),
    [
        (COMPUTE, DENSE, [], "all published steps are of attention or convolution models"),
        (MEMORY, ATTENTION, [], "too few published steps of models with attention are memory-bound"),
        (COMPUTE, ATTENTION, ["float32"], "they compute in bfloat16"),
        (COMPUTE, CONVOLUTIONS, ["fast"], "a fast look counts"),
        (step(flops=61.5e10), ATTENTION, [], "take at least 232 ms, or longer"),
    ],
)
def test_of_a_step_like_none_of_the_table_the_least_is_all_that_is_said(found, layers, rules, why):
    said = expect(found, layers, generation="v3", rules=rules)

    assert said.spread is None
    assert why in said.why


def test_a_step_may_be_a_tenth_of_the_shortest_but_no_shorter():
    shortest = FAR_SHORTER * spread("attention", "compute").shortest_s

    assert expect(step(flops=61.6e12 * shortest), ATTENTION, generation="v3", rules=[]).spread
    assert not expect(step(flops=61.4e12 * shortest), ATTENTION, generation="v3", rules=[]).spread


def test_every_finding_that_sets_a_step_apart_is_one_that_is_reported(project):
    page = (project / "docs/tpu.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    rules = {name.strip() for cell in cells for name in cell.split(",")}

    assert rules >= set(UNLIKE_ALL)
