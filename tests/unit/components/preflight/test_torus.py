from itertools import product

import pytest

from slipway.components.preflight.torus import Span, dimensions, rings, span


def grid(topology):
    """The places of all chips, with a third coordinate on flat slices, as libtpu has them."""
    sizes = dimensions(topology)
    return [(*place, 0)[:3] for place in product(*map(range, sizes))]


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ("2x4", (False, False)),
        ("8x16", (False, True)),
        ("16x16", (True, True)),
        ("2x2x4", (False, False, False)),
        ("4x4x4", (True, True, True)),
        ("4x4x8", (True, True, True)),
    ],
)
def test_axes_of_sixteen_and_those_of_whole_cubes_are_rings(topology, expected):
    assert rings(topology) == expected


@pytest.mark.parametrize(
    ("topology", "links", "hops"),
    [("1x1", 0, 0), ("2x2", 2, 2), ("2x4", 2, 4), ("8x16", 3, 15), ("16x16", 4, 16), ("4x4x4", 6, 6)],
)
def test_a_whole_slice_uses_two_links_of_each_ring_and_one_of_each_line(topology, links, hops):
    found = span(grid(topology), topology)

    assert (found.shape, found.links, found.hops) == (topology, links, hops)


def test_a_group_uses_the_axes_that_it_takes_up():
    pair = [(0, 0, 0), (1, 0, 0)]
    every_second = [(x, y, 0) for x in range(0, 16, 2) for y in range(16)]
    half = [(x, 0, 0) for x in range(8)]

    assert span(pair, "16x16") == Span(shape="2x1", chips=2, links=1, hops=1)
    assert span(every_second, "16x16") == Span(shape="8x16", chips=128, links=4, hops=16)
    assert span(half, "16x16") == Span(shape="8x1", chips=8, links=1, hops=7)


def test_two_devices_of_a_chip_take_up_one():
    assert span([(0, 0, 0), (0, 0, 0)], "2x2x1") == Span(shape="1x1x1", chips=1, links=0, hops=0)
