"""The roofline against step times that others have measured and published."""

import re

import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.expected import least, ratio, spread
from slipway.components.preflight.other_slices import OTHER_SLICES
from slipway.components.preflight.published_steps import PUBLISHED

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


def figures(found) -> str:
    return f"{found.rows} | {found.models} | {found.median:.2f} | {found.low:.2f} to {found.high:.2f} |"


KINDS = (("attention", "compute"), ("convolution", "memory"), ("convolution", "compute"))


def generation_lines():
    """The rows of docs/tpu.md with the ratios of each generation that has enough of a kind and bound."""
    for kind, bound in KINDS:
        for generation in CHIPS:
            if found := spread(kind, bound, generation):
                yield f"| {kind}, {bound}, {generation} | {figures(found)}"


@pytest.mark.parametrize("row", PUBLISHED, ids=IDS)
def test_roofline_is_never_slower_than_what_was_measured(row):
    assert 1 < ratio(row) < 4


@pytest.mark.parametrize(
    "row", [row for row in PUBLISHED if row.rate and not row.source.startswith("[MaxText]")], ids=str
)
def test_operations_and_time_give_the_rate_that_was_published_beside_them(row):
    chips = row.devices / CHIPS[row.generation].devices
    rates = [
        row.batch_size * row.network.flops(row.sequence, counted=share) / chips / row.step_s
        for share in (0.5, 1)
    ]

    # One of the two ways to count attention, for MaxText has changed its own. The paper rounds, to 0.1 s.
    rounded = 0.05 / row.step_s + 0.001 if row.source.startswith("[AXLearn paper]") else 0.0
    assert min(abs(rate / row.rate - 1) for rate in rates) < 0.001 + rounded


def test_table_is_of_several_models_sources_and_generations():
    assert len(PUBLISHED) >= 10
    assert {row.generation for row in PUBLISHED} == set(CHIPS)
    assert len({row.network.name for row in PUBLISHED}) >= 10
    assert len({row.source.partition("]")[0] for row in PUBLISHED}) >= 5
    assert len({(row.network.name, row.slice, row.source) for row in PUBLISHED}) == len(PUBLISHED)


def test_a_slice_of_v4_or_v5p_is_named_by_cores_of_which_two_make_a_device():
    devices = {row.slice: row.devices for row in PUBLISHED}

    assert (devices["v4-128"], devices["v5p-1024"], devices["v5e-256"], devices["v7-128"]) == (
        64,
        512,
        256,
        128,
    )
    assert all(OTHER_SLICES[name].devices == found for name, found in devices.items() if name in OTHER_SLICES)


def test_docs_show_the_same_numbers(project):
    page = (project / "docs/tpu.md").read_text(encoding="utf-8")

    shown = [each for each in page.splitlines() if "] " in each and each.startswith("| ") and " | v" in each]
    assert shown == [line(row) for row in PUBLISHED]
    assert f"beside {len(PUBLISHED)} steps" in page
    by_generation = re.findall(r"^\| \w+, \w+, v\d\w* \| .+", page, re.MULTILINE)
    assert by_generation == list(generation_lines())
    for kind, bound in KINDS:
        assert f"| {kind}, {bound} | {figures(spread(kind, bound))}" in page
