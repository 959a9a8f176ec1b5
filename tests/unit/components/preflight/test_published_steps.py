"""The roofline against step times that others have measured and published."""

import dataclasses

import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.expected import least, ratio, spread
from slipway.components.preflight.published_steps import PUBLISHED, Transformer

IDS = [f"{row.network.name} {row.slice} {row.source}" for row in PUBLISHED]


def time(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def shape(row) -> str:
    return f"{row.batch_size:,} x {row.sequence:,}" if row.sequence else f"{row.batch_size:,}"


def line(row) -> str:
    """The row as docs/tpu.md has it."""
    source = row.source if row.precision == "bfloat16" else f"{row.source}, precision {row.precision}"
    found = least(row)
    return (
        f"| {row.network.name} | {row.slice} | {shape(row)} | {time(row.step_s)} | {time(found.step_s)} | "
        f"{found.bound} | {ratio(row):.2f} | {source} |"
    )


@pytest.mark.parametrize("row", PUBLISHED, ids=IDS)
def test_roofline_is_never_slower_than_what_was_measured(row):
    assert 1 < ratio(row) < 4


@pytest.mark.parametrize("row", [row for row in PUBLISHED if row.rate and row.generation != "v5e"], ids=str)
def test_operations_and_time_give_the_rate_that_was_published_beside_them(row):
    chips = row.devices / CHIPS[row.generation].devices
    rates = [
        row.batch_size * row.network.flops(row.sequence, counted=share) / chips / row.step_s
        for share in (0.5, 1)
    ]

    # One of the two ways to count attention, for MaxText has changed its own.
    assert min(abs(rate / row.rate - 1) for rate in rates) < 0.001


def test_table_is_of_several_models_sources_and_generations():
    assert len(PUBLISHED) >= 10
    assert {row.generation for row in PUBLISHED} == set(CHIPS) - {"v4", "v5p"}
    assert len({row.network.name for row in PUBLISHED}) >= 10
    assert len({row.source.partition("]")[0] for row in PUBLISHED}) >= 5
    assert len({(row.network.name, row.slice, row.source) for row in PUBLISHED}) == len(PUBLISHED)


def test_operations_of_a_transformer_are_six_for_each_weight_and_those_of_attention():
    tiny = Transformer(
        name="tiny", layers=2, width=8, hidden=32, heads=2, kv_heads=1, head_size=4, vocabulary=16
    )
    # Query and output 8 x 8, key and value 8 x 4, three matrices 8 x 32; logits 8 x 16.
    weights = 2 * (2 * 64 + 2 * 32 + 3 * 256)

    assert tiny.weights == weights
    # Scores and sums, 2 x 2 x 4 x 10 each, three times, of two layers; half of them are of later positions.
    assert tiny.flops(10) == 10 * (6 * (weights + 128) + 2 * 3 * 4 * 8 * 10 / 2)
    both_ways = dataclasses.replace(tiny, is_causal=False)
    assert both_ways.flops(10) == tiny.flops(10, counted=1)
    assert tiny.flops(10, counted=0) == 10 * 6 * (weights + 128)


def test_models_of_maxtext_have_the_sizes_of_the_commit_that_published_their_rates():
    networks = {row.network.name: row.network for row in PUBLISHED if row.source.startswith("[MaxText]")}

    found = {name: (each.layers, each.width, each.hidden, each.heads) for name, each in networks.items()}
    assert found == {
        "MaxText 16B": (32, 5120, 32768, 32),
        "MaxText 32B": (32, 10240, 32768, 32),
        "MaxText 64B": (64, 10240, 32768, 32),
        "MaxText 128B": (64, 10240, 65536, 64),
    }
    for name, each in networks.items():
        named = float(name.split()[-1].removesuffix("B")) * 1e9
        assert each.weights + each.width * each.vocabulary == pytest.approx(named, rel=0.02)


def test_docs_show_the_same_numbers(project):
    page = (project / "docs/tpu.md").read_text(encoding="utf-8")

    shown = [each for each in page.splitlines() if "] " in each and each.startswith("| ") and " | v" in each]
    assert shown == [line(row) for row in PUBLISHED]
    for kind, bound in (("attention", "compute"), ("convolution", "memory"), ("convolution", "compute")):
        found = spread(kind, bound)
        assert (
            f"| {kind}, {bound} | {found.rows} | {found.models} | {found.median:.2f} | "
            f"{found.low:.2f} to {found.high:.2f} |"
        ) in page
