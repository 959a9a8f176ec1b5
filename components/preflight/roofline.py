"""Computes the least time of a step from what it computes, moves and sends. Pure.

Source: S. Williams, A. Waterman, D. Patterson: Roofline, Communications of the ACM 52(4), 2009. The three
times are assumed to overlap completely, and each unit to run at its peak, so a real step takes longer;
`expected` derives by how much from what others have measured.
"""

from dataclasses import dataclass
from typing import Literal

from slipway.components.preflight.chip_specs import HOP_S, Chip, Price
from slipway.components.preflight.question_and_answer import Collective, Compiled, Slice

Bound = Literal["compute", "memory", "communication"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The least time of a step and what follows from it. All values are estimates.

    Attributes:
        memory_s: the time of the memory traffic alone.
        batch_size: the global batch size, in examples.
        chips: the number of chips of the whole slice.
        price: the price of one chip-hour; None if unknown.
    """

    compute_s: float
    memory_s: float
    communication_s: float
    batch_size: int
    chips: int
    price: Price | None

    @property
    def price_usd(self) -> float | None:
        """The price of an hour of the whole slice, in US dollars; None if unknown."""
        return None if self.price is None else self.price.usd * self.chips

    @property
    def step_s(self) -> float:
        """The least time of a step, in seconds."""
        return max(self.compute_s, self.memory_s, self.communication_s)

    @property
    def bound(self) -> Bound:
        """The resource that limits the step."""
        parts: dict[Bound, float] = {
            "compute": self.compute_s,
            "memory": self.memory_s,
            "communication": self.communication_s,
        }
        return max(parts, key=lambda name: parts[name])

    @property
    def examples_per_s(self) -> float:
        """The most examples per second that the slice can process, and that the input must deliver."""
        return self.batch_size / self.step_s

    def training_s(self, examples: int) -> float:
        """Return the least time for a number of examples, counted over all epochs."""
        return examples / self.examples_per_s

    def cost_usd(self, examples: int) -> float | None:
        """Return the least cost for a number of examples, in US dollars; None if the price is unknown."""
        return None if self.price_usd is None else self.training_s(examples) / 3600 * self.price_usd


def estimate(compiled: Compiled, wanted: Slice, chip: Chip) -> Estimate:
    """Estimate the least time of a compiled step.

    Args:
        compiled: the compiler's report, with the operations and bytes of one device.
    """
    return Estimate(
        compute_s=compiled.flops / (chip.peak_flops / chip.devices),
        memory_s=compiled.moved_bytes / (chip.bandwidth_bytes / chip.devices),
        communication_s=sum(collective_s(each, chip) for each in compiled.collectives),
        batch_size=compiled.batch_size,
        chips=wanted.devices // chip.devices,
        price=chip.price,
    )


def collective_s(sent: Collective, chip: Chip) -> float:
    """Return the least time of the collectives of one kind and group, one after the other, in seconds.

    In a ring of n chips, each sends (n - 1) / n of the whole array to gather it (all-gather) or to sum it
    in parts (reduce-scatter), and twice that for the sum on every chip (all-reduce); in an all-to-all
    (n - 1) / n of its own part, each piece at least over one link. A group that takes up several axes has a
    ring on each, and each carries its share. It takes no less than the hops to the farthest chip of the
    group, which an all-reduce by a ring or a tree makes twice. Devices of one chip send each other nothing
    through the links. That other groups use the same links at the same time is not counted.

    Sources: P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009, for the ring;
    J. Austin et al., How to Scale Your Model, part 3, "A Deeper Dive into TPU Communication Primitives" and
    "A note on ICI latency": the larger of hops and bytes / (bandwidth of a link x links of all axes).
    """
    if sent.chips == 1:
        return 0.0
    on_chip = sent.devices / sent.chips
    share = (sent.chips - 1) / sent.chips
    sent_bytes = {
        "all-reduce": 2 * share * sent.result_bytes,
        "all-gather": share * sent.result_bytes,
        "reduce-scatter": share * sent.result_bytes * sent.devices,
        "all-to-all": share * sent.result_bytes * on_chip,
        "collective-permute": sent.result_bytes * on_chip,
    }[sent.kind]
    rounds = 2 if sent.kind == "all-reduce" else 1
    moving_s = sent_bytes / (chip.link_bytes / chip.links * sent.links)
    return max(rounds * sent.hops * HOP_S * sent.count, moving_s)
