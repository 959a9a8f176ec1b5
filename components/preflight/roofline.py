"""Computes the least time of a step from what it computes, moves and sends. Pure.

S. Williams, A. Waterman, D. Patterson: Roofline, Communications of the ACM 52(4), 2009. The three times are
taken to overlap completely and each unit to run at its peak, so that a real step takes longer: by how much,
`expected` knows from what others have measured.
"""

from dataclasses import dataclass
from typing import Literal

from slipway.components.preflight.chips import Chip, Price
from slipway.components.preflight.question_and_answer import Compiled, Slice

Bound = Literal["compute", "memory", "communication"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The least time of a step and what follows from it. All of it is an estimate.

    Attributes:
        compute_s, memory_s, communication_s: of each part alone.
        batch_size: global, examples.
        chips: of the whole slice.
        price: of one of them; None: not known.
    """

    compute_s: float
    memory_s: float
    communication_s: float
    batch_size: int
    chips: int
    price: Price | None

    @property
    def price_usd(self) -> float | None:
        """Of an hour of the whole slice; None: not known."""
        return None if self.price is None else self.price.usd * self.chips

    @property
    def step_s(self) -> float:
        """The least time of a step, seconds."""
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
        """That the slice takes at most, and that the input must deliver."""
        return self.batch_size / self.step_s

    def training_s(self, examples: int) -> float:
        """The least time that so many examples take, all epochs counted."""
        return examples / self.examples_per_s

    def cost_usd(self, examples: int) -> float | None:
        """Their least cost; None if the price is not known."""
        return None if self.price_usd is None else self.training_s(examples) / 3600 * self.price_usd


def estimate(compiled: Compiled, wanted: Slice, chip: Chip) -> Estimate:
    """The estimate of a compiled step.

    Args:
        compiled: flops and bytes of one device.
    """
    # A ring sends every byte twice, less one part of it: Patarasuk and Yuan, JPDC 69(2), 2009.
    sent_bytes = 2 * (wanted.devices - 1) / wanted.devices * compiled.collective_bytes
    return Estimate(
        compute_s=compiled.flops / (chip.peak_flops / chip.devices),
        memory_s=compiled.moved_bytes / (chip.bandwidth_bytes / chip.devices),
        communication_s=sent_bytes / (chip.link_bytes / chip.devices),
        batch_size=compiled.batch_size,
        chips=wanted.devices // chip.devices,
        price=chip.price,
    )
