"""How the chips of a slice are linked: which axes of it are rings, and what a group of chips can use. Pure.

The chips of a slice are the points of a grid, and each is linked to its neighbours along each axis. Where
the two ends of an axis are linked as well, the axis is a ring, and data goes both ways around it.

Sources, read in November 2026: J. Austin et al., How to Scale Your Model, part 2 (jax-ml/scaling-book,
tpus.md, commit 04d8de5): v5e and v6e have rings on axes of 16. Documentation of Cloud TPU, pages on v4 and
v5p: slices of 4x4x4 and more, all axes multiples of 4, are tori; for v7, which has cubes of 4x4x4, too, the
same is assumed. Twisted tori are not considered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

RING_2D, CUBE_3D = 16, 4
"""An axis of a flat slice is a ring at this length; the axes of a deep one if all are multiples of that."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """The part of a slice that a group of chips takes up.

    Attributes:
        shape: the number of chips along each axis, such as "4x4".
        links: the links of one chip that the group can use at once: two on an axis that is a ring, one on
            another, since the chips at its ends have no more; 0 for one chip.
        hops: the number of links between the two chips of it that are farthest from each other.
    """

    shape: str
    chips: int
    links: int
    hops: int


def dimensions(topology: str) -> tuple[int, ...]:
    """Return the sizes of a topology such as "2x4"."""
    return tuple(int(size) for size in topology.split("x"))


def rings(topology: str) -> tuple[bool, ...]:
    """Return for each axis of a topology whether it is a ring."""
    sizes = dimensions(topology)
    if len(sizes) == 2:
        return tuple(size == RING_2D for size in sizes)
    return (all(size % CUBE_3D == 0 for size in sizes),) * len(sizes)


def span(places: Sequence[Sequence[int]], topology: str) -> Span:
    """Return the part of a slice that a group takes up.

    Args:
        places: the coordinates of the chip of each device of the group.
    """
    sizes, are_rings = dimensions(topology), rings(topology)
    taken, links, hops = [], 0, 0
    for axis, (size, is_ring) in enumerate(zip(sizes, are_rings, strict=True)):
        at = sorted({place[axis] for place in places})
        taken.append(len(at))
        if len(at) == 1:
            continue
        # Every second chip of a ring, and the like, goes around it as well.
        goes_around = is_ring and len(at) * (at[1] - at[0]) == size
        links += 2 if goes_around else 1
        hops += size // 2 if goes_around else at[-1] - at[0]
    return Span(
        shape="x".join(map(str, taken)),
        chips=len({tuple(place) for place in places}),
        links=links,
        hops=hops,
    )
