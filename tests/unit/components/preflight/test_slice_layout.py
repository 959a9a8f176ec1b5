from dataclasses import replace

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.question_and_answer import (
    Answer,
    Collective,
    Compiled,
    MeshAxis,
    Question,
    Slice,
)
from slipway.components.preflight.roofline import estimate
from slipway.components.preflight.slice_layout import layout_lines

FOUR_HOSTS = Slice(name="v5e-16", generation="v5e", devices=16, hosts=4, topology="4x4")
ONE_CHIP = Slice(name="v5e-1", generation="v5e", devices=1, topology="1x1")
SUM = Collective(
    kind="all-reduce", count=2, result_bytes=2**30, devices=8, chips=8, shape="2x4", links=2, hops=4
)
PAIR = Collective(
    kind="all-gather", count=1, result_bytes=2**20, devices=2, chips=1, shape="1x1", links=0, hops=0
)


def lines(where, *sent, rate=None, mesh=(), chip=CHIPS["v5e"]):
    question = Question(slice=where, model="a.b", hyperparameters={}, features=(), label="y", batch_size=4096)
    step = Compiled(batch_size=4096, flops=197e12 * 1e-3, collectives=sent)
    found = estimate(step, where, chip)
    return layout_lines(question, Answer(step=step, target="tpu", mesh=mesh), found, rate)


def test_each_host_has_its_part_of_the_batch_and_of_the_files():
    found = lines(FOUR_HOSTS, rate=4 * 2**20 * 100)

    assert found == [
        "  ~ estimate: 4 hosts of 4 chips; each costs 4.80 USD an hour and reads 1,024 of a step's 4,096 "
        "examples, at most 1,024,000 examples/s, 100 MiB/s of its files, where they are streamed"
    ]
    assert "MiB/s" not in lines(FOUR_HOSTS)[0]


def test_what_a_host_costs_is_left_out_where_no_price_is_known():
    [line] = lines(FOUR_HOSTS, chip=replace(CHIPS["v5e"], price=None))

    assert "4 chips; each reads 1,024 of" in line


def test_the_mesh_says_where_the_copies_of_a_model_lie():
    mesh = (
        MeshAxis(name="batch", devices=8, shape="2x4", hosts=4),
        MeshAxis(name="model", devices=2, shape="2x1", hosts=1),
    )

    assert lines(FOUR_HOSTS, mesh=mesh)[1] == (
        "  ~ mesh: batch 8 over 2x4 chips of 4 hosts; model 2 over 2x1 chips of one host"
    )


def test_each_collective_says_what_it_costs_on_which_links():
    # 2 * 7/8 of a GiB over two links of 50e9 bytes a second.
    assert lines(FOUR_HOSTS, SUM, PAIR)[1:] == [
        "  ~ estimate: 2 x all-reduce over 2x4 chips: 1.00 GiB in at least 18.8 ms (2 of a chip's 4 links, "
        "4 hops)",
        "  ~ estimate: all-gather within a chip: 1.00 MiB, not over links",
    ]


def test_one_device_has_no_layout():
    assert lines(ONE_CHIP) == []
